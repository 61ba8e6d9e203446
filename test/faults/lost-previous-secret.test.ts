import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { migrations } from '../../adapters/postgres/migrations/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { assertOpens, keyRing } from '../../lib/keys/key-ring.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import { sealedForExporters } from '../../lib/webhooks/exporters/exporter-resealing.ts';
import { sealSecret, unsealSecrets } from '../../lib/webhooks/messages/signing-secret.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { testDatabase } from '../support/test-database.ts';

const HOUR = 3_600_000;

/** An exporter with the secret `A`, and what signs for it so many milliseconds from now. */
async function exporterWithSecret(t: Test, stores: WebhookStores) {
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const guard = egressGuard({ allow: [] });
    const queue = memoryQueue();
    // Nobody sends the tests that follow a change.
    const sleep = async (): Promise<void> => undefined;
    const sender = httpSender({ guard, attemptTimeout: 100, connectTimeout: 100 });
    const { exporters, close } = webhooks({ ...stores, queue, keyRing: ring, guard, sender, sleep });
    t.teardown(async () => {
        await close();
        await queue.close();
    });
    const { exporter } = await exporters.create({ url: 'https://receiver.example/hook', secret: 'A' });
    const row = async () => (await stores.exporters.get(exporter.id)) as NonNullable<Awaited<ReturnType<typeof stores.exporters.get>>>;
    return {
        id: exporter.id,
        ring,
        row,
        change: (changes: ExporterChanges) => exporters.update(exporter.id, changes),
        set: (secret: string) => exporters.update(exporter.id, { secret }),
        secretsIn: async (milliseconds: number) =>
            unsealSecrets(await row(), ring, new Date((await stores.deliveries.now()).getTime() + milliseconds)),
    };
}

t.test('in memory', async (t) => {
    let now = Date.now();
    const stores = memoryWebhooks({ clock: () => new Date(now) });

    t.test('a secret that was changed twice within a day stays valid to its end', async (t) => {
        const { set, secretsIn } = await exporterWithSecret(t, stores);
        await set('B');
        now += HOUR;
        await set('C');
        t.same(await secretsIn(0), ['C', 'B', 'A']);
        t.same(await secretsIn(23 * HOUR - 1), ['C', 'B', 'A']);
        t.same(await secretsIn(23 * HOUR), ['C', 'B']);
        t.same(await secretsIn(24 * HOUR), ['C']);
    });

    t.test('the one before a new secret goes on for as long as is said, or ends at once', async (t) => {
        const { id, change, set, secretsIn } = await exporterWithSecret(t, stores);
        await change({ secret: 'B', overlap: 2 * HOUR });
        t.same(await secretsIn(2 * HOUR - 1), ['B', 'A']);
        t.same(await secretsIn(2 * HOUR), ['B']);
        await change({ secret: 'C', overlap: 0 });
        t.same(await secretsIn(0), ['C', 'A'], 'each has its own end');
        await set('D');
        t.same(await secretsIn(24 * HOUR - 1), ['D', 'C']);
        await t.rejects(change({ overlap: HOUR }), { code: 'INVALID_INPUT', field: 'overlap', message: /goes with a new secret/ });
        await t.rejects(change({ secret: 'E', overlap: 31 * 24 * HOUR }), { code: 'INVALID_INPUT', field: 'overlap' });
        t.equal((await stores.exporters.get(id))?.previousSecrets.length, 2);
    });

    t.test('the same secret set again changes nothing', async (t) => {
        const { row, set, secretsIn } = await exporterWithSecret(t, stores);
        await set('B');
        const before = await row();
        now += HOUR;
        const { exporter } = await set('B');
        t.same(await row(), before);
        t.same(exporter.updatedAt, before.updatedAt);
        t.same(await secretsIn(23 * HOUR), ['B']);
    });

    t.test('a secret that is current again is no previous one', async (t) => {
        const { set, secretsIn } = await exporterWithSecret(t, stores);
        await set('B');
        await set('A');
        t.same(await secretsIn(0), ['A', 'B']);
        now += HOUR;
        await set('C');
        t.same(await secretsIn(24 * HOUR - 1), ['C', 'A'], 'it has the end of its last change');
    });

    t.test('a header never gets longer than receivers take', async (t) => {
        const { set, secretsIn } = await exporterWithSecret(t, stores);
        for (let number = 1; number <= 20; number += 1) {
            await set(`secret ${number}`);
        }
        await t.rejects(set('one more'), { code: 'CONFLICT', field: 'secret' });
        t.equal((await secretsIn(0)).length, 21);
        now += 24 * HOUR;
        await set('one more');
        t.same(await secretsIn(0), ['one more', 'secret 20']);
    });

    t.test('the key ring must open each that is valid', async (t) => {
        const stores = memoryWebhooks({ clock: () => new Date(now) });
        const { id, ring, row, set } = await exporterWithSecret(t, stores);
        await set('B');
        now += HOUR;
        await set('C');
        const { sealedSecret, previousSecrets, url } = await row();
        const sealed = await sealedForExporters(stores.exporters, new Date(now));
        t.same(
            sealed.map((one) => one.sealed),
            [sealedSecret, ...previousSecrets.map((one) => one.sealed), url],
        );

        const other = keyRing({ current: 'other', keys: { other: randomBytes(32) } });
        const foreign = { sealed: sealSecret(other, id, 'A'), until: new Date(now + HOUR) };
        await stores.exporters.update(id, { previousSecrets: [...previousSecrets, foreign] });
        const opens = async (time: number) => assertOpens(ring, await sealedForExporters(stores.exporters, new Date(time)));
        await t.rejects(opens(now), { code: 'MISCONFIGURED' });
        await t.resolves(opens(now + HOUR));
    });
});

t.test('on PostgreSQL', async (t) => {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool);

    for (const [name, stores] of [
        ['PostgreSQL', postgresWebhooks({ pool })],
        ['memory', memoryWebhooks()],
    ] as const) {
        t.test(`of changes at once none is lost: ${name}`, async (t) => {
            const { set, secretsIn } = await exporterWithSecret(t, stores);
            await Promise.all(['B', 'C', 'D'].map(set));
            t.same([...(await secretsIn(HOUR))].toSorted(), ['A', 'B', 'C', 'D']);
        });
    }

    t.test('the same change at once is made once', async (t) => {
        const { row, set, secretsIn } = await exporterWithSecret(t, postgresWebhooks({ pool }));
        await Promise.all(['B', 'B', 'B'].map(set));
        t.same(await secretsIn(0), ['B', 'A']);
        t.equal((await row()).previousSecrets.length, 1);
    });
});

t.test('a process of the version before and one of this see each other’s changes', async (t) => {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool, { steps: migrations.filter(({ id }) => id < '0005') });
    const id = randomUUID();
    const until = new Date(Date.now() + HOUR);
    await pool.query(
        `insert into scanwire.exporters (id, name, url, collector, type, legacy, trust, signatures, header_names, state,
            consecutive_failures, sealed_secret, sealed_previous_secret, previous_secret_until, created_at, updated_at)
        values ($1, '', 'https://receiver.example/', 'default', 'investigation', false, 'strict', '["base64"]', '[]', 'stopped',
            0, 'B', 'A', $2, now(), now())`,
        [id, until],
    );
    await migrate(pool);
    const { exporters } = postgresWebhooks({ pool });
    const stored = async () => {
        const row = await exporters.get(id);
        return [row?.sealedSecret, row?.previousSecrets];
    };
    t.same(await stored(), ['B', [{ sealed: 'A', until }]], 'the migration carries it over');

    await pool.query(
        `update scanwire.exporters set updated_at = now(), sealed_secret = 'C', sealed_previous_secret = 'B', previous_secret_until = $2
        where id = $1`,
        [id, until],
    );
    const previous = [
        { sealed: 'B', until },
        { sealed: 'A', until },
    ];
    t.same(await stored(), ['C', previous], 'a change by the version before');

    const later = new Date(until.getTime() + HOUR);
    await exporters.update(id, { sealedSecret: 'D', previousSecrets: [{ sealed: 'C', until: later }, ...previous] });
    const { rows } = await pool.query('select sealed_previous_secret, previous_secret_until from scanwire.exporters');
    t.same(rows, [{ sealed_previous_secret: 'C', previous_secret_until: later }], 'a change by this version');
});
