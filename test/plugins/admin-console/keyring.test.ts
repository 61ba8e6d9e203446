import { randomBytes } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { memoryApiKeys, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { postgresApiKeys, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { apiKeys } from '../../../lib/keys/api-keys.ts';
import { type KeyRing, keyRing } from '../../../lib/keys/key-ring.ts';
import type { ApiKeyStore } from '../../../lib/keys/store.ts';
import type { WebhookStores } from '../../../lib/webhooks/options.ts';
import { OPERATOR } from '../../../plugins/admin-console/audit.ts';
import { handlersOf } from '../../../plugins/admin-console/handlers.ts';
import { migratedDatabase } from '../../support/migrated-database.ts';
import { recordingProcess } from '../../support/recording-process.ts';

const [one, two, three] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const before = keyRing({ current: 'one', keys: { one } });
const both = keyRing({ current: 'two', keys: { one, two } });
const after = keyRing({ current: 'two', keys: { two } });

const DAY = 86_400_000;
const SETTINGS = {
    url: 'https://receiver.example/hook?token=t0ken',
    secret: 'first',
    headers: [['X-Token', 'h3ader']],
    basic: { username: 'ada', password: 'passw0rd' },
    format: 'pagerduty',
    formatSecret: 'R0UT1NG'.padEnd(32, 'x'),
} as const;

/** What an administrator can do in a process with this key ring, and the process. */
function processWith(t: Test, { keys, stores }: { readonly keys: ApiKeyStore; readonly stores: WebhookStores }, ring: KeyRing) {
    const own = recordingProcess(t, stores, { keyRing: ring, guard: egressGuard({ allow: ['receiver.example'] }) });
    const made = apiKeys({ store: keys, keyRing: ring });
    const { rotateKeyRing = async () => ({ sealed: 0, unopened: [], next: null }) } = handlersOf({ keys: made, webhooks: own }, OPERATOR);
    return {
        ...own,
        keys: made,
        rotateKeyRing,
        /** All batches of a round. */
        async rotated() {
            const total = { sealed: 0, unopened: [] as string[], batches: 0 };
            for (let next: string | null | undefined; next !== null; total.batches++) {
                const batch = await rotateKeyRing(next === undefined ? {} : { after: next });
                total.sealed += batch.sealed;
                total.unopened.push(...batch.unopened);
                next = batch.next;
            }
            return total;
        },
    };
}

t.test('leaves nothing in any table that the old key has sealed, and everything as it was', async (t) => {
    const { url, drop } = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: url });
    t.after(async () => {
        await pool.end();
        await drop();
    });
    const world = { keys: postgresApiKeys({ pool }), stores: postgresWebhooks({ pool }) };
    const old = processWith(t, world, before);
    const { id: keyId, key } = await old.keys.create('ci');
    const { exporter } = await old.exporters.create(SETTINGS);
    await old.exporters.update(exporter.id, { secret: 'second' });
    const stored = await world.stores.exporters.get(exporter.id);
    const ended = { sealed: before.seal('zeroth', `exporter:${exporter.id}`), until: new Date(Date.now() - DAY) };
    await world.stores.exporters.update(exporter.id, { previousSecrets: [...(stored?.previousSecrets ?? []), ended] });

    const sealedWithOne = async (): Promise<readonly string[]> => {
        const { rows } = await pool.query<{ name: string }>(`select tablename as name from pg_tables where schemaname = 'scanwire'`);
        const found = await Promise.all(
            rows.map(async ({ name }) => {
                const of = `select 1 from scanwire.${name} t where t::text like '%v1.one.%' limit 1`;
                return (await pool.query(of)).rowCount === 0 ? [] : [name];
            }),
        );
        return found.flat().sort();
    };
    t.same(await sealedWithOne(), ['api_keys', 'exporters']);

    const rotating = processWith(t, world, both);
    // Two at once do no harm.
    await Promise.all([rotating.rotated(), processWith(t, world, both).rotated()]);
    t.same(await rotating.rotated(), { sealed: 0, unopened: [], batches: 2 });
    t.same(await sealedWithOne(), []);

    const next = processWith(t, world, after);
    await next.start();
    t.equal((await next.keys.reveal(keyId)).key, key);
    t.equal(await next.exporters.secret(exporter.id), 'second');
    t.equal((await next.exporters.show(exporter.id, { showUrl: true })).url, SETTINGS.url);
    await next.work(['default']);
    await next.exporters.start(exporter.id);
    t.match(Buffer.from(next.sent[0]?.body ?? '').toString(), /R0UT1NG/);
    t.match(next.sent[0], { authentication: { basic: SETTINGS.basic } });
    t.ok(next.sent[0]?.headers.some(([name, value]) => name === 'X-Token' && value === 'h3ader'));
});

t.test('goes on where it was cut off, batch by batch', async (t) => {
    const world = { keys: memoryApiKeys(), stores: memoryWebhooks() };
    const old = processWith(t, world, before);
    for (let count = 0; count < 501; count++) {
        await old.keys.create(`key ${count}`);
    }
    for (let count = 0; count < 51; count++) {
        await old.exporters.create({ url: 'https://receiver.example/' });
    }

    const cut = processWith(t, world, both);
    const first = await cut.rotateKeyRing({});
    t.match(first, { sealed: 500, unopened: [], next: /^keys:[0-9a-f-]{36}$/ });
    t.same(await processWith(t, world, both).rotated(), { sealed: 1 + 51, unopened: [], batches: 3 });
});

t.test('reads each exporter once, however many there are, also one that is removed meanwhile', async (t) => {
    const world = { keys: memoryApiKeys(), stores: memoryWebhooks() };
    const old = processWith(t, world, before);
    for (let count = 0; count < 120; count++) {
        await old.exporters.create({ url: 'https://receiver.example/' });
    }

    const { exporters, ...stores } = world.stores;
    const [first] = await exporters.list();
    const read: string[] = [];
    const counting: typeof exporters = {
        ...exporters,
        async get(id) {
            read.push(id);
            return id === first?.id ? null : await exporters.get(id);
        },
        async list(options) {
            const all = await exporters.list(options);
            read.push(...all.map(({ id }) => id));
            return all;
        },
    };
    const pass = () => processWith(t, { ...world, stores: { ...stores, exporters: counting } }, both).rotated();
    t.same(await pass(), { sealed: 119, unopened: [], batches: 1 + 3 });
    t.equal(read.length, 120);
    t.equal(new Set(read).size, 120);

    const { summaries: _, ...lesser } = exporters;
    const rest = processWith(t, { ...world, stores: { ...stores, exporters: lesser } }, both);
    t.same(await rest.rotated(), { sealed: 1, unopened: [], batches: 1 + 3 }, 'a store without summaries');
});

t.test('names what it cannot open, seals the rest, and goes round no circle', async (t) => {
    const world = { keys: memoryApiKeys(), stores: memoryWebhooks() };
    const lost = processWith(t, world, keyRing({ current: 'three', keys: { three } }));
    const { id } = await lost.keys.create('lost');
    const { exporter } = await lost.exporters.create({ url: 'https://receiver.example/' });
    const { id: kept } = await processWith(t, world, before).keys.create('kept');

    const { unopened, ...done } = await processWith(t, world, both).rotated();
    t.same(done, { sealed: 1, batches: 2 });
    t.same(unopened, [`api-key:${id}`, `exporter:${exporter.id}`, `exporter:${exporter.id}:url`]);
    t.match(await world.keys.get(kept), { sealed: /^v1\.two\./ });
});

t.test('seals again what somebody has changed meanwhile, so that nothing is left of the old key', async (t) => {
    const stores = memoryWebhooks();
    const world = { keys: memoryApiKeys(), stores };
    const old = processWith(t, world, before);
    const { exporter } = await old.exporters.create({ url: 'https://receiver.example/', secret: 'first' });
    const { exporter: removed } = await old.exporters.create({ url: 'https://receiver.example/' });
    let [changing, changes] = [exporter.id, 1];
    const get = async (id: string) => {
        const found = await stores.exporters.get(id);
        if (id === removed.id) {
            await stores.exporters.remove(id);
        } else if (id === changing && changes > 0) {
            changes -= 1;
            await old.exporters.update(id, { secret: `changed ${changes}` });
        }
        return found;
    };

    const raced = processWith(t, { ...world, stores: { ...stores, exporters: { ...stores.exporters, get } } }, both);
    t.same(await raced.exporters.sealAnew(), { sealed: 1, unopened: [], next: null });
    const stored = await stores.exporters.get(exporter.id);
    t.notMatch(JSON.stringify(stored), /v1\.one\./);
    t.equal(await processWith(t, world, both).exporters.secret(exporter.id), 'changed 0');
    t.same(await processWith(t, world, both).rotated(), { sealed: 0, unopened: [], batches: 2 });

    const { exporter: restless } = await old.exporters.create({ url: 'https://receiver.example/' });
    [changing, changes] = [restless.id, 1_000];
    await t.rejects(raced.exporters.sealAnew(), { code: 'CONFLICT' }, 'no round says that all is done');
    changes = 0;
    t.match(await raced.exporters.sealAnew(), { sealed: 1 });
    t.notMatch(JSON.stringify(await stores.exporters.get(restless.id)), /v1\.one\./);

    const broken = { ...stores.exporters, update: () => Promise.reject(new Error('down')) };
    await old.exporters.create({ url: 'https://receiver.example/' });
    await t.rejects(processWith(t, { ...world, stores: { ...stores, exporters: broken } }, both).exporters.sealAnew(), { message: 'down' });
});

t.test('says where it cannot', async (t) => {
    const { sealedByOthers: _, ...others } = memoryApiKeys();
    await t.rejects(apiKeys({ store: others, keyRing: both }).sealAnew(), { code: 'MISCONFIGURED', message: /sealedByOthers/ });
    t.same(await apiKeys({ store: others, revealable: false }).sealAnew(), { sealed: 0, unopened: [], next: null });
    const failing: KeyRing = {
        ...both,
        open() {
            throw new Error('the vault is away');
        },
    };
    const world = { keys: memoryApiKeys(), stores: memoryWebhooks() };
    await processWith(t, world, before).keys.create('ci');
    await t.rejects(processWith(t, world, failing).rotated(), { message: 'the vault is away' });
    await t.rejects(processWith(t, world, both).rotateKeyRing({ after: 'records' }), { code: 'INVALID_INPUT', field: 'after' });
    t.same(handlersOf({ migrate: async () => [] }, OPERATOR).rotateKeyRing, undefined);
});
