import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { openMemoryDatabase } from '../../adapters/pglite/embedded-database.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { removeExporter, STEP } from '../../adapters/postgres/webhooks/exporter-removal.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { INVESTIGATION } from '../support/simulated-deployment.ts';

/** More than a few steps, and no whole number of them. */
const COUNT = 3 * STEP + 7;

/** A deployment on an embedded database where nobody sends; `cancelled` has how many were after each statement of a removal. */
async function notSending(t: Test) {
    const db = await openMemoryDatabase();
    t.teardown(() => db.end());
    await migrate(db);
    const count = async (state: string): Promise<number> => {
        const { rows } = await db.query<{ count: number }>('select count(*)::integer from scanwire.deliveries where state = $1', [state]);
        return rows[0]?.count ?? 0;
    };
    const cancelled: number[] = [];
    const control = { fails: (_sql: string): boolean => false };
    const remove = (id: string): Promise<boolean> =>
        removeExporter(
            {
                async query<Row>(sql: string, values?: unknown[]) {
                    if (control.fails(sql)) {
                        throw new Error('The process has ended');
                    }
                    const result = await db.query<Row>(sql, values);
                    cancelled.push(await count('cancelled'));
                    return result;
                },
            },
            id,
        );
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const queue = memoryQueue();
    const deployment = webhooks({ ...postgresWebhooks({ pool: db }), queue, keyRing: ring, guard, sender: httpSender({ guard }) });
    t.teardown(() => deployment.close());

    const exporter = async (state: object): Promise<string> => {
        const { exporter } = await deployment.exporters.create({ url: 'http://127.0.0.1:9/' });
        const set = Object.entries(state).map(([column, value]) => `${column} = '${value}'`);
        await db.query(`update scanwire.exporters set ${set.join(', ')} where id = $1`, [exporter.id]);
        return exporter.id;
    };
    return { db, deployment, control, cancelled, count, exporter, remove };
}

const publish = async ({ deployment }: Awaited<ReturnType<typeof notSending>>, orderKey?: string): Promise<void> => {
    const bodies = Array.from({ length: COUNT }, (_, index) => ({ ...INVESTIGATION, title: String(index) }));
    const key = orderKey === undefined ? {} : { orderKey };
    await deployment.publishAll(bodies.map((body) => ({ kind: 'idr_investigation_created', body, ...key })));
};

/** How many were cancelled by each statement that cancelled any. */
const steps = (cancelled: readonly number[]): number[] => {
    return cancelled.map((count, index) => count - (cancelled[index - 1] ?? 0)).filter((step) => step > 0);
};

for (const [title, state, orderKey] of [
    ['that wait', { state: 'running' }],
    ['that wait for others of their order key', { state: 'running', ordered: true }, 'one'],
    ['that are held', { state: 'stopped', stop_reason: 'The receiver answered 410 Gone' }],
] as const) {
    t.test(`an exporter with many deliveries ${title} is removed in steps that hold nobody up`, async (t) => {
        const self = await notSending(t);
        const removed = await self.exporter(state);
        const other = await self.exporter({ state: 'running' });
        await publish(self, orderKey);
        await self.remove(removed);
        t.strictSame(steps(self.cancelled), [STEP, STEP, STEP, 7]);
        t.equal(await self.count('cancelled'), COUNT);
        t.equal(await self.count('pending'), COUNT, 'those of others wait');
        await t.rejects(self.deployment.exporters.get(removed), { code: 'NOT_FOUND' });
        t.equal((await self.deployment.deliveries.count({ exporterId: removed, state: 'cancelled' })).count, COUNT);
        const { rows } = await self.db.query('select from scanwire.order_places p where p.exporter_id = $1', [removed]);
        t.equal(rows.length, 0);
        t.match(await self.deployment.exporters.get(other), { state: 'running' });
    });
}

t.test('a removal that is cut short leaves the exporter stopped, and another call ends it', async (t) => {
    const self = await notSending(t);
    const removed = await self.exporter({ state: 'running' });
    await publish(self);
    let cancelling = 0;
    self.control.fails = (sql) => sql.includes('cancel_some_waiting') && ++cancelling === 3;
    await t.rejects(self.remove(removed), /has ended/);
    t.match(await self.deployment.exporters.get(removed), { state: 'stopped', stopReason: null });
    t.equal(await self.count('cancelled'), 2 * STEP);
    await publish(self);
    t.equal(await self.count('pending'), COUNT - 2 * STEP, 'nothing more comes for it');

    await self.remove(removed);
    t.equal(await self.count('cancelled'), COUNT);
    t.equal(await self.count('pending'), 0);
});

t.test('one with few is removed by one statement, with all that waits', async (t) => {
    const self = await notSending(t);
    const removed = await self.exporter({ state: 'running' });
    await self.deployment.publish('idr_investigation_created', { ...INVESTIGATION, title: 'one' });
    await self.remove(removed);
    t.strictSame(steps(self.cancelled), [1]);
    t.equal(self.cancelled.length, 2, 'and the look at how many there are');
});
