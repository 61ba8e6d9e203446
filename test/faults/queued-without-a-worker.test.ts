/** What stays queued, since nobody works for its collector, does not hold up the others when the queue has lost its jobs, nor a stop. */
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { SweepOptions } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { WebhookStores, WebhooksOptions } from '../../lib/webhooks/options.ts';
import { migratedMemory } from '../support/migrated-database.ts';
import { type RecordingProcess, recordingProcess } from '../support/recording-process.ts';
import { INVESTIGATION } from '../support/simulated-deployment.ts';

const KIND = 'idr_investigation_created';
/** More than two rounds of a sweep find. */
const QUEUED = 1_200;
/** For each collector: as many as a new exporter may have in flight. */
const EACH = 200;
/** Many more than there are rounds. A process that never leaves its sweep would never let the test go on. */
const TOO_MANY_SWEEPS = 30;

/** Stores with deliveries that are queued for collectors, and one for another that waits to be handed out. */
async function queued(t: Test, stores: WebhookStores): Promise<void> {
    const host = recordingProcess(t, stores);
    const isolated: string[] = [];
    for (let index = 0; index < QUEUED / EACH; index += 1) {
        const { exporter } = await host.exporters.create({ url: 'https://receiver.example/', collector: `zone-${index}` });
        await stores.exporters.update(exporter.id, { state: 'running' });
        isolated.push(exporter.id);
    }
    await host.publishAll(Array.from({ length: EACH }, () => ({ kind: KIND, body: { ...INVESTIGATION, title: 'queued' } })));
    const { handedOut } = await stores.deliveries.dispatch({ window: EACH, breakerAfter: 10, limit: QUEUED });
    t.equal(handedOut.length, QUEUED);
    for (const id of isolated) {
        await stores.exporters.update(id, { state: 'stopped' });
    }
    const other = await host.exporters.create({ url: 'https://other.example/' });
    await stores.exporters.update(other.exporter.id, { state: 'running' });
    await host.publish(KIND, { ...INVESTIGATION, title: 'for the other' });
}

/** A process whose queue has just lost all jobs, and the ids that its sweeps have found. */
function sweeping(t: Test, stores: WebhookStores, options: Partial<WebhooksOptions> = {}, around = async () => {}) {
    const rounds: (readonly string[])[] = [];
    const deliveries: WebhookStores['deliveries'] = {
        ...stores.deliveries,
        async sweep(sweepOptions: SweepOptions) {
            if (rounds.length > TOO_MANY_SWEEPS) {
                throw new Error('It goes on sweeping');
            }
            await around();
            const swept = await stores.deliveries.sweep(sweepOptions);
            rounds.push(swept.lost.map(({ deliveryId }) => deliveryId));
            await around();
            return swept;
        },
    };
    return { process: recordingProcess(t, { ...stores, deliveries }, options), rounds };
}

async function sends(t: Test, process: RecordingProcess): Promise<void> {
    await process.start();
    await process.work(['default']);
    await until(() => process.sent.some(({ body }) => Buffer.from(body).includes('for the other')));
    const errors = process.errors.filter(({ message }) => !message.startsWith('The clock of this process'));
    t.strictSame(errors, []);
}

for (const [title, ahead] of [
    ['whose clock is right', 0],
    ['whose clock is ahead', 3_600_000],
    ['whose clock is behind', -3_600_000],
] as const) {
    t.test(`each is added once to a queue that has lost all, beside a store ${title}`, async (t) => {
        const clock = { now: 0 };
        const began = Date.now() + ahead;
        const stores = memoryWebhooks({ clock: () => new Date(began + clock.now) });
        await queued(t, stores);
        clock.now += 100;
        const { process, rounds } = sweeping(t, stores, { monotonic: () => clock.now }, async () => {
            clock.now += 20;
        });
        await sends(t, process);
        t.strictSame(
            rounds.slice(0, 3).map((ids) => ids.length),
            [500, 500, 200],
        );
        t.equal(new Set(rounds.flat()).size, QUEUED);
    });
}

t.test('over a database, too, others are sent', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const stores = postgresWebhooks({ pool });
    await queued(t, stores);
    const { process, rounds } = sweeping(t, stores);
    await sends(t, process);
    t.equal(new Set(rounds.flat()).size, QUEUED);
});

t.test('a process that is stopped leaves what is left of its sweep', async (t) => {
    const stores = memoryWebhooks();
    await queued(t, stores);
    const gates: (() => void)[] = [];
    let isStopping = false;
    const { process, rounds } = sweeping(t, stores, {}, async () => {
        await (isStopping ? undefined : new Promise<void>((resolve) => gates.push(resolve)));
    });
    await process.start();
    await until(() => gates.length === 1);
    gates[0]?.();
    await until(() => gates.length === 2);
    const closed = process.close();
    isStopping = true;
    gates[1]?.();
    await closed;
    t.equal(rounds.length, 1);
});
