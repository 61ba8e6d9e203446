import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import pg from 'pg';
import t from 'tap';
import { postgresQueue, redisQueue } from '../../adapters/bullmq/index.ts';
import { memoryApiKeys, memoryAudit, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../adapters/memory/index.ts';
import { openEmbeddedDatabase } from '../../adapters/pglite/index.ts';
import {
    migrate,
    postgresApiKeys,
    postgresInventory,
    postgresRecords,
    postgresStores,
    postgresWebhooks,
    transaction,
} from '../../adapters/postgres/index.ts';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import { auditTrail } from '../../lib/audit/audit-trail.ts';
import { exportWorkspace, readOnlyInventory } from '../../lib/inventory/index.ts';
import { apiKeys } from '../../lib/keys/api-keys.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { issueLicense, newLicenseKeyPair, signedLicense } from '../../lib/license/index.ts';
import { protect } from '../../lib/protect/index.ts';
import { captureRecord, captureRecords, capturer, importRecords, readRecords, recordSource } from '../../lib/records/index.ts';
import { replayCache, verify } from '../../lib/verify/index.ts';
import { egressGuard, httpSender, webhookMetrics, webhooks } from '../../lib/webhooks/index.ts';
import { metricsRoute } from '../../plugins/metrics/index.ts';
import { HUSH, refusesAll, untyped, type Wrong, wrong } from './refusal.ts';

/* What somebody can get wrong at the functions of the package: each is refused where it is given, not by the first query. */

const bytes = randomBytes(32);
const ring = keyRing({ current: 'k1', keys: { k1: bytes } });
const pool = { query: async () => ({ rows: [], rowCount: 0 }), connect: async () => ({}) };

type Make = (options?: unknown) => unknown;

/** Rows of a function: each gives it other options, as an object that is merged into options that work, or in their place. */
function tableOf(of: string, make: unknown, good: object, rows: readonly (readonly [string, RegExp, unknown])[]): readonly Wrong[] {
    return rows.map(([option, rule, change]) => {
        const options = typeof change === 'object' && change !== null ? { ...good, ...change } : change;
        return wrong(of, option, rule, () => (make as Make)(options));
    });
}

const NO_POOL = /must be a pool of node-postgres or the embedded database: an object with query and connect/;
const NO_CLIENT = /must be a pool .*, and no client$/;

const KEYS: readonly Wrong[] = [
    ...tableOf('keyRing', keyRing, { current: 'k1', keys: { k1: bytes } }, [
        ['keyRing options', /is required/, undefined],
        ['keys', /is required/, { keys: undefined }],
        ['current', /must be a string/, { current: bytes }],
        ['current', /must be in the key ring/, { current: 'k2' }],
        ['k1', /must be 32 bytes/, { keys: { k1: HUSH } }],
        ['k1', /must be 32 bytes/, { keys: { k1: randomBytes(16) } }],
        ['keys', /has an id with other characters than letters, digits, "-" and "_"/, { keys: { k1: bytes, 'key 2': bytes } }],
    ]),
    ...tableOf('apiKeys', apiKeys, { store: memoryApiKeys(), keyRing: ring }, [
        ['apiKeys options', /is required/, undefined],
        ['store', /must have the function findByDigest/, { store: { insert: () => {} } }],
        ['keyRing', /is required/, { keyRing: undefined }],
        ['newId', /must be of type function/, { newId: 'uuid' }],
    ]),
    ...['admin', ['admin'], 7].map((options) =>
        wrong('create', 'options', /must be an object, such as \{ scopes: \['admin'\] \}/, () =>
            apiKeys({ store: memoryApiKeys(), keyRing: ring }).create('a', untyped(options)),
        ),
    ),
    ...tableOf('replayCache', replayCache, {}, [['max', /must be a whole number of at least 1/, { max: 0 }]]),
    ...tableOf('verify', (options: unknown) => verify(new Uint8Array(), {}, untyped(options)), { secrets: ['x'.repeat(32)] }, [
        ['secrets', /must be a list of at least one secret/, { secrets: undefined }],
        ['secrets', /must be a list of at least one secret/, { secrets: HUSH }],
        ['secrets[0]', /must/, { secrets: [`${HUSH}\n`] }],
        ['forms', /must be a list of at least one of/, { forms: ['sha1'] }],
        ['tolerance', /must be 1000 to 86400000 milliseconds/, { tolerance: 5 }],
        ['tolerance', /must be 1000 to 86400000 milliseconds/, { tolerance: 300 }],
        ['vendor', /must be 1 to 40 letters and digits/, { vendor: 'Acme Inc.' }],
        ['clock', /must be a function/, { clock: new Date() }],
        ['clock', /must give the time, as a Date/, { clock: Date.now }],
        ['replays', /must have the function isNew/, { replays: {}, forms: ['standard-webhooks'] }],
        ['verify options', /secrets must be a list of at least one secret/, undefined],
    ]),
];

const { privateKey, publicKey } = newLicenseKeyPair();
const term = { holder: 'Acme', notBefore: new Date(0), expires: new Date(1e12) };

const LICENSE: readonly Wrong[] = [
    ...tableOf('signedLicense', signedLicense, { file: '/nowhere', publicKey }, [
        ['signedLicense', /is required/, undefined],
        ['publicKey', /is required/, { publicKey: undefined }],
        ['publicKey', /must be an Ed25519 public key in PEM form/, { publicKey: HUSH }],
        ['publicKey', /must be an Ed25519 public key in PEM form/, { publicKey: privateKey }],
        ['file', /must contain at least one of/, { file: undefined }],
        ['file', /conflict|exclusive/, { read: async () => null }],
        ['checkEveryMs', /must be greater than or equal to 0/, { checkEveryMs: -1 }],
        ['checkEveryMs', /must be less than or equal to 86400000/, { checkEveryMs: 1e12 }],
    ]),
    wrong('issueLicense', 'privateKey', /must be an Ed25519 private key in PEM form/, () => issueLicense(term, HUSH)),
    wrong('issueLicense', 'expires', /must be greater than notBefore/, () => issueLicense({ ...term, expires: new Date(0) }, privateKey)),
    wrong('issueLicense', 'holder', /must not contain control characters/, () => issueLicense({ ...term, holder: 'a\nb' }, privateKey)),
];

const QUEUES: readonly Wrong[] = [
    ...tableOf('redisQueue', redisQueue, {}, [
        ['redisQueue options', /is required/, undefined],
        ['url', /must contain at least one of/, {}],
        ['url', /must be a URL that begins with redis|must begin with redis/, { url: `http://u:${HUSH}@127.0.0.1` }],
        ['url', /must/, { url: `redis://:${HUSH}@127.0.0.1:port` }],
        ['url', /conflict|exclusive/, { url: 'redis://127.0.0.1', connection: {} }],
        ['connection', /must be a client of ioredis, or the options to make one/, { connection: 6379 }],
        ['prefix', /must be letters, digits, "-" and "_", and in braces also ":"/, { url: 'redis://127.0.0.1', prefix: 'a:b' }],
        ['onWarning', /must be of type function/, { url: 'redis://127.0.0.1', onWarning: console }],
    ]),
    ...tableOf('postgresQueue', postgresQueue, {}, [
        ['postgresQueue options', /is required/, undefined],
        ['pool', /must be a pool of node-postgres/, {}],
        ['pool', /must be/, { pool: `postgres://u:${HUSH}@127.0.0.1/x` }],
        ['connections', /must be greater than or equal to 1/, { pool: { options: {}, Client: () => {} }, connections: 0 }],
    ]),
];

const STORES: readonly Wrong[] = [
    ...[postgresStores, postgresApiKeys, postgresInventory, postgresRecords, postgresWebhooks].flatMap((make) =>
        tableOf(make.name, make, {}, [
            [`${make.name} options: pool`, NO_POOL, undefined],
            [`${make.name} options: pool`, NO_POOL, pool],
            [`${make.name} options: pool`, NO_CLIENT, { pool: new pg.Client() }],
            [`${make.name} options: pool`, NO_CLIENT, { pool: { ...pool, release: () => {} } }],
            [`${make.name} options: pool`, NO_POOL, { pool: `postgres://u:${HUSH}@127.0.0.1/x` }],
        ]),
    ),
    ...[postgresStores, postgresApiKeys, postgresInventory, postgresRecords].map((make) =>
        wrong(make.name, 'clock', /must be of type function/, () => untyped(make)({ pool, clock: new Date() })),
    ),
    ...[postgresStores, postgresWebhooks].flatMap((make) =>
        tableOf(make.name, make, { pool }, [
            ['notify', /must be a boolean/, { notify: 'channel' }],
            ['prepare', /must be a boolean/, { prepare: 'yes' }],
            ['pools', /is not allowed/, { pools: [pool] }],
        ]),
    ),
    wrong('migrate', 'pool', NO_POOL, () => untyped(migrate)({ pool })),
    wrong('migrate', 'pool', NO_POOL, () => untyped(migrate)(`postgres://u:${HUSH}@127.0.0.1/x`)),
    wrong('migrate', 'pool', NO_CLIENT, () => untyped(migrate)(new pg.Client())),
    wrong('transaction', 'pool', NO_POOL, () => untyped(transaction)()),
    wrong('transaction', 'pool', NO_POOL, () => untyped(transaction)({}, async () => {})),
    wrong('transaction', 'pool', NO_CLIENT, () => untyped(transaction)(new pg.Client(), async () => {})),
    wrong('transaction', 'run', /must be a function of the client/, () => untyped(transaction)(pool)),
    wrong('migrate', 'steps', /must be/, () => untyped(migrate)(pool, { steps: '0001' })),
    ...tableOf('openEmbeddedDatabase', openEmbeddedDatabase, {}, [
        ['openEmbeddedDatabase options', /is required/, undefined],
        ['folder', /is required/, {}],
        ['folder', /must be a string/, { folder: 1 }],
        ['folder', /must be one that can be made and written: .*\(EEXIST\)/, { folder: process.execPath }],
        ['folder', /must be one that can be made and written: .*\(ENOTDIR\)/, { folder: `${process.execPath}/data` }],
        ['folder', /must be one that can be made and written: .*\(E\w+\)/, { folder: '/sys/data' }],
    ]),
    ...tableOf('openScanDatabase', openScanDatabase, {}, [
        ['openScanDatabase options', /is required/, undefined],
        ['pool', /or connectionString must be given, and not both/, {}],
        ['pool', /must be a pool of node-postgres/, { pool: {} }],
        ['connectionString', /must begin with postgres:\/\//, { connectionString: `mysql://u:${HUSH}@127.0.0.1/x` }],
        ['connections', /must be greater than or equal to 1/, { connectionString: 'postgres://127.0.0.1/x', connections: 0 }],
    ]),
    ...tableOf('memoryInventory', memoryInventory, {}, [
        ['batchSize', /must be greater than or equal to 1/, { batchSize: 0 }],
        ['clock', /must be of type function/, { clock: 5 }],
    ]),
    ...tableOf('memoryRecords', memoryRecords, {}, [['inventory', /must have the function addEndpoints/, { inventory: {} }]]),
    ...tableOf('memoryApiKeys', memoryApiKeys, {}, [['clock', /must be of type function/, { clock: 5 }]]),
    ...tableOf('readOnlyInventory', readOnlyInventory, { workspaces: () => [], hosts: () => [] }, [
        ['readOnlyInventory functions', /is required/, undefined],
        ['hosts', /is required/, { hosts: undefined }],
        ['services', /must be of type function/, { services: [] }],
        ['vulns', /needs services/, { vulns: () => [] }],
        ['host', /is not allowed/, { host: () => [] }],
    ]),
    wrong('readOnlyInventory', 'pageSize', /must be greater than or equal to 1/, () =>
        untyped(readOnlyInventory)({ workspaces: () => [], hosts: () => [] }, { pageSize: 0 }),
    ),
];

const guard = egressGuard({ allow: [] });
const parts = { ...memoryWebhooks(), queue: memoryQueue(), keyRing: ring, guard, sender: httpSender({ guard }) };

const SENDING: readonly Wrong[] = [
    ...tableOf('webhooks', webhooks, parts, [
        ['webhooks options', /is required/, undefined],
        ['sender', /is required/, { sender: undefined }],
        ['sender', /must have the function send/, { sender: {} }],
        ['sender.attemptTimeout', /must be a positive number of milliseconds/, { sender: { send: () => {}, close: () => {} } }],
        ['guard', /must have the function vet/, { guard: { allow: [] } }],
        ['settings', /is required/, { settings: undefined }],
        ['deliveries', /must be of the same database as exporters/, { deliveries: memoryWebhooks().deliveries }],
        ['settings', /must be of the same database as exporters/, { settings: memoryWebhooks().settings }],
        ['role', /must be one of \[host, worker\]/, { role: 'leader' }],
        ['onError', /must be of type function/, { onError: console }],
        ['egress', /is not allowed/, { egress: { allow: [] } }],
        ['vendor', /must be 1 to 40 letters and digits/, { vendor: 'Acme Inc.' }],
    ]),
    ...tableOf('work', (options: unknown) => webhooks(parts).work(...(untyped(options).given as [never])), {}, [
        ['collectors', /must be an array/, { given: ['default'] }],
        ['concurrency', /must be greater than or equal to 1/, { given: [['default'], { concurrency: 0 }] }],
    ]),
    ...tableOf('egressGuard', egressGuard, {}, [
        ['egressGuard policy', /allow must be a list of CIDR blocks and host names/, undefined],
        ['allow', /must be a list of CIDR blocks and host names/, {}],
        ['Entry 1', /is a URL: write its host name, or its address/, { allow: ['http://127.0.0.1'] }],
        ['Entry 1', /has bits set behind its prefix: write the first address of the block/, { allow: ['10.1.2.3/8'] }],
        ['Entry 2', /is not a CIDR block/, { allow: ['10.0.0.0/8', '10.0.0.0/40'] }],
    ]),
    ...tableOf('httpSender', httpSender, { guard }, [
        ['httpSender options', /is required/, undefined],
        ['guard', /is required/, { guard: undefined }],
        ['guard', /must have the function vet/, { guard: { allow: [] } }],
        ['attemptTimeout', /must be less than or equal to 30000/, { attemptTimeout: 60_000 }],
        ...['dnsTimeout', 'connectTimeout', 'attemptTimeout'].map(
            (name) => [name, /must be greater than or equal to 100: it is in milliseconds/, { [name]: 5 }] as const,
        ),
        ['maxResponseBytes', /must be greater than or equal to 0/, { maxResponseBytes: -1 }],
        ['resolver', /must be one of \[dns, system\]/, { resolver: 'cloud' }],
        ['nameServers', /must contain at least 1 items/, { nameServers: [] }],
        ['nameServers[0]', /must be an address, or an address and a port/, { nameServers: ['dns.example.com'] }],
    ]),
    ...tableOf('webhookMetrics', webhookMetrics, { source: () => null }, [
        ['source', /is required/, { source: undefined }],
        ['registry', /must have the function metrics/, { registry: {} }],
    ]),
    ...tableOf('capturer', capturer, { guard }, [
        ['capture options', /is required/, undefined],
        ['guard', /is required/, { guard: undefined }],
        ...['dnsTimeout', 'connectTimeout', 'timeout'].map(
            (name) => [name, /must be greater than or equal to 100: it is in milliseconds/, { [name]: 15 }] as const,
        ),
        ['connectTimeout', /must be less than or equal to timeout/, { connectTimeout: 9000, timeout: 8000 }],
        ['dnsTimeout', /must be less than or equal to timeout/, { dnsTimeout: 9000, timeout: 8000 }],
        ['maxBytes', /must be less than or equal to/, { maxBytes: 1e12 }],
        ['userAgent', /must/, { userAgent: 'a\r\nb' }],
    ]),
    wrong('issueLicense', 'Licence', /is required/, () => untyped(issueLicense)()),
    wrong('exportWorkspace', 'Export', /is required/, () => untyped(exportWorkspace)(memoryInventory())),
    wrong('metricsRoute', 'Metrics', /is required/, () => untyped(metricsRoute)()),
    ...tableOf('importRecords', (options: unknown) => untyped(importRecords)([], options), {}, [
        ['importRecords options', /is required/, undefined],
        ['store', /is required/, {}],
        ['store', /must have the function add/, { store: {} }],
        ['store', /must be of type object/, { store: [] }],
    ]),
    wrong('captureRecord', 'guard', /is required/, () => untyped(captureRecord)('https://127.0.0.1/')),
    wrong('captureRecords', 'guard', /is required/, () => untyped(captureRecords)([]).next()),
    ...[undefined, null, 'text', 7, {}, Buffer.from('{}'), recordSource].map((source) =>
        wrong('readRecords', 'source', /must be a stream of bytes, such as recordSource\(path\) gives/, () => untyped(readRecords)(source)),
    ),
    wrong('readRecords', 'mend', /must be one of/, () => untyped(readRecords)([], { mend: 'all' })),
    ...[0, 1e10, '1 MiB'].map((maxLineBytes) =>
        wrong('readRecords', 'maxLineBytes', /must be a number from 1 to 268435456/, () => untyped(readRecords)([], { maxLineBytes })),
    ),
    ...tableOf('auditTrail', auditTrail, { store: memoryAudit(), onError: () => {} }, [
        ['keepFor', /must be greater than or equal to 86400000: it is in milliseconds/, { keepFor: 30 }],
    ]),
];

const listener = createServer();

const PROTECT: readonly Wrong[] = [
    wrong('protect', 'listener', /must be the listener of node:http or node:https/, () => untyped(protect)()),
    wrong('protect', 'listener', /must be the listener of node:http or node:https/, () => untyped(protect)({ listener })),
    ...tableOf('protect', (limits: unknown) => protect(listener, untyped(limits)), {}, [
        ['maxConnections', /must be greater than or equal to 1/, { maxConnections: 0 }],
        ['maxPerAddress', /must be an integer/, { maxPerAddress: 1.5 }],
        ['maxPerAddress', /must be less than or equal to maxConnections/, { maxConnections: 10, maxPerAddress: 11 }],
        ['maxWithoutRequest', /must be greater than or equal to 1/, { maxWithoutRequest: 0 }],
        ...['handshakeTimeout', 'headTimeout', 'idleTimeout', 'bodyTimeout', 'requestTimeout', 'answerTimeout'].map(
            (name) => [name, /must be greater than or equal to 1000: it is in milliseconds/, { [name]: 300 }] as const,
        ),
        ['headTimeout', /must be a number/, { headTimeout: '15 s' }],
        ['isLong', /must be of type function/, { isLong: true }],
        ['maxPerIp', /is not allowed/, { maxPerIp: 5 }],
    ]),
];

t.test('takes options that are right', async (t) => {
    t.doesNotThrow(() => postgresStores({ pool: untyped(pool), clock: () => new Date(), notify: false, prepare: false }));
    t.doesNotThrow(() => redisQueue({ connection: { host: '127.0.0.1', port: 6379 } }));
    t.doesNotThrow(() => httpSender({ guard, nameServers: ['192.0.2.1', '[2001:db8::1]:5353'] }));
    t.doesNotThrow(() => readOnlyInventory({ workspaces: () => [], hosts: () => [] }));
    await protect(createServer()).sweep();
});

for (const [name, table] of Object.entries({ KEYS, LICENSE, QUEUES, STORES, SENDING, PROTECT })) {
    t.test(`refuses ${table.length} wrong configurations: ${name}`, (t) => refusesAll(t, table));
}
