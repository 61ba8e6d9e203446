import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { memoryApiKeys, memoryAudit, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../adapters/memory/index.ts';
import { type PostgresStores, postgresStores } from '../../adapters/postgres/index.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { rowsOf } from '../../lib/inventory/host-pages.ts';
import { OPERATOR } from '../../plugins/admin-console/audit.ts';
import { performerOf } from '../../plugins/admin-console/handlers.ts';
import { schemas } from '../../plugins/admin-console/operation-schemas.ts';
import { endpoints, type Input, type OperationName } from '../../plugins/admin-console/operations.ts';
import { callTool, toolsOf } from '../../plugins/mcp/tools.ts';
import { admin, host, investigation, register, systemOf } from '../plugins/admin-console/host.ts';
import { migratedMemory, migratedPool } from '../support/migrated-database.ts';

/*
 * PostgreSQL has neither NUL nor half a surrogate pair in a text: the one it refuses with an error of its own, of the other it gets another
 * character. So each text that is given to us is either refused by the field that it is in, or kept as it is, whatever the store: it never fails
 * the server, never is another one when it is read again, and never is taken for another one.
 */

const UNKEPT = { NUL: 'a\0b', 'half a pair': 'a\ud83d' } as const;
/** What stands for half a pair once somebody has written it in UTF-8. */
const REPLACEMENT = '\ufffd';

const KIND = 'idr_investigation_created';
const TIME = '2026-01-01T00:00:00.000Z';
const ID = '6f0c8b1e-3c5f-4f1a-9b8e-2d0a7c4e5f61';
const USER = { name: 'Ada', distinguishedName: 'CN=Ada', link: 'https://example.com/ada', emails: 'ada@example.com' };
const BODY = { ...investigation, actors: { users: [USER], assets: [] } };
const EVENT = { kind: KIND, body: BODY };
const SEARCH = { kind: KIND, exporterId: ID, eventId: ID, after: ID, since: TIME, until: TIME };
const URL_OF_RECEIVER = 'http://127.0.0.1:9/hook';

type Sample = Readonly<Record<string, unknown>>;

/** Settings of an exporter that go together. */
const SETTINGS: readonly Sample[] = [
    { url: URL_OF_RECEIVER, name: 'one', collector: 'edge', kinds: ['idr_*'], filter: { all: [{ path: 'title', op: '=', value: 'One' }] } },
    { url: URL_OF_RECEIVER, format: 'template', template: { text: 'of {{ event.body.title }}' }, headers: [['x-one', 'two']] },
    { url: URL_OF_RECEIVER, format: 'pagerduty', formatSecret: 'a'.repeat(32) },
    { url: URL_OF_RECEIVER, oauth: null, secret: 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', basic: { username: 'user', password: 'pass' } },
    { url: URL_OF_RECEIVER, proxy: { url: 'http://127.0.0.1:3128' } },
    {
        url: URL_OF_RECEIVER,
        basic: null,
        oauth: { tokenUrl: 'https://127.0.0.1:9/token', clientId: 'id', clientSecret: 'secret', scope: 'a', audience: 'b' },
    },
];
const drafts = SETTINGS.map(({ url: _, collector: __, basic: ___, proxy: ____, oauth: _____, ...draft }) => draft);

/** What each operation takes, with every text that it can have. `EXPORTER` stands for the id of one that there is. */
const SAMPLES: { readonly [Name in OperationName]: readonly Sample[] } = {
    createKey: [{ name: 'one', scopes: ['admin'], expiresAt: '2126-01-01T00:00:00.000Z' }],
    listKeys: [],
    revealKey: [{ id: ID }],
    revokeKey: [{ id: ID }],
    createExporter: SETTINGS.map((settings) => ({ ...settings, owner: 'ann' })),
    listExporters: [{ owner: 'ann' }],
    summarizeExporters: [{ owner: 'ann' }],
    pageExporters: [{ owner: 'ann', after: ID }],
    showExporter: [{ id: 'EXPORTER' }],
    updateExporter: [
        { id: 'EXPORTER', wait: false, owner: 'ann' },
        // What a proxy could read unasked is refused without it.
        ...SETTINGS.map((settings) => ({ id: 'EXPORTER', wait: false, ...settings, ...('proxy' in settings && { keepHeaders: true }) })),
    ],
    startExporter: [{ id: ID }],
    stopExporter: [{ id: 'EXPORTER' }],
    pauseExporter: [{ id: 'EXPORTER' }],
    resumeExporter: [{ id: ID }],
    testExporter: [{ id: ID }],
    removeExporter: [{ id: ID }],
    explainExporter: [{ id: 'EXPORTER', ...EVENT, owner: 'ann' }],
    previewExporter: [{ id: 'EXPORTER', ...EVENT }],
    previewDraft: drafts.map((draft) => ({ draft: { id: 'EXPORTER', ...draft }, ...EVENT })),
    publishEvent: [
        { ...EVENT, owner: 'ann', rules: 'library' },
        { ...EVENT, idempotencyKey: 'key' },
        { ...EVENT, orderKey: 'order' },
    ],
    showEvent: [{ id: ID }],
    eraseEvent: [{ id: ID }],
    listDeliveries: [{ ...SEARCH, state: 'pending', outcome: 'delivered' }],
    countDeliveries: [{ ...SEARCH, state: 'pending', outcome: 'delivered' }],
    listAttempts: [{ ...SEARCH, deliveryId: ID }],
    countAttempts: [{ ...SEARCH, deliveryId: ID }],
    showActivity: [{ exporterId: ID, span: 'day' }],
    showDelivery: [{ id: ID }],
    showMessage: [{ id: ID }],
    replayDelivery: [{ id: ID }],
    discardDelivery: [{ id: ID }],
    beginReplay: [{ exporterId: 'EXPORTER', failedSince: TIME, dryRun: true }],
    listReplays: [],
    showReplay: [{ id: ID }],
    cancelReplay: [{ id: ID }],
    diagnose: [],
    diagnoseExporter: [{ id: ID }],
    showLicense: [],
    installLicense: [],
    trustLicense: [],
    importScan: [{ workspace: 'lab' }],
    exportWorkspace: [{ workspace: 'lab', format: 'jsonl' }],
    listWorkspaces: [],
    showWorkspace: [{ name: 'lab' }],
    updateWorkspace: [{ name: 'lab', boundary: '10.0.0.0/8' }],
    renameWorkspace: [{ name: 'other', to: 'another' }],
    removeWorkspace: [{ name: 'none' }],
    listHosts: [{ workspace: 'lab', address: '10.0.0.1', state: 'alive', search: 'x' }],
    showHost: [{ workspace: 'lab', address: '10.0.0.1' }],
    moveHosts: [{ ids: [1], to: 'lab' }],
    removeHosts: [{ workspace: 'lab', address: '10.0.0.9' }],
    expireHosts: [{ workspace: 'lab', notSeenSince: TIME }],
    rotateKeyRing: [{ after: `keys:${ID}` }],
    migrate: [],
    listAudit: [{ since: TIME, until: TIME, actor: 'ada', operation: 'createKey', after: ID }],
};

const HOST: HostInput = {
    address: '10.0.0.1',
    name: 'web',
    os_name: 'Linux',
    mac: '00:00:5e:00:53:01',
    comments: 'of a rack',
    services: [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' }],
    notes: [{ ntype: 'host.x', data: { output: 'text', more: ['a'] } }],
    vulns: [{ name: 'CVE-2026-0001', info: 'of a list' }],
};

/** The value with one of its texts spoilt at a time, or with a member more whose name is. */
function* spoilt(value: unknown, text: string, path = ''): Generator<readonly [path: string, value: unknown]> {
    if (typeof value === 'string') {
        yield [path, value + text];
    } else if (Array.isArray(value)) {
        for (const [index, item] of value.entries()) {
            for (const [at, other] of spoilt(item, text, `${path}[${index}]`)) {
                yield [at, value.with(index, other)];
            }
        }
    } else if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
        yield [`${path}{}`, { ...value, [text]: 'x' }];
        for (const [name, item] of Object.entries(value)) {
            for (const [at, other] of spoilt(item, text, path === '' ? name : `${path}.${name}`)) {
                yield [at, { ...value, [name]: other }];
            }
        }
    }
}

type Stores = Pick<PostgresStores, 'apiKeys' | 'webhooks' | 'audit' | 'inventory' | 'records'>;

const STORES: Readonly<Record<string, (t: Test) => Promise<Stores>>> = {
    memory: async () => ({
        apiKeys: memoryApiKeys(),
        webhooks: memoryWebhooks(),
        audit: memoryAudit(),
        inventory: memoryInventory(),
        records: memoryRecords(),
    }),

    async 'embedded database'(t) {
        const pool = await migratedMemory();
        t.teardown(() => pool.end());
        return postgresStores({ pool });
    },

    PostgreSQL: async (t) => postgresStores({ pool: await migratedPool(t, { max: 4 }) }),
};

/** A host with all that the console administers, its exporter and its workspaces. */
async function served(t: Test, stores: Stores) {
    const server = await host({}, { ...stores, queue: memoryQueue() });
    const system = { ...systemOf(server, stores), inventory: stores.inventory };
    await register(server, { system });
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: URL_OF_RECEIVER });
    await stores.inventory.importHosts('lab', each([HOST]));
    await stores.inventory.ensureWorkspace('other');
    return { server, system, exporter: exporter.id };
}

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

function samplesOf(name: OperationName, exporter: string): readonly Sample[] {
    return JSON.parse(JSON.stringify(SAMPLES[name]).replaceAll('EXPORTER', exporter), (key, value) =>
        key === 'notSeenSince' ? new Date(value) : value,
    ) as readonly Sample[];
}

/** The refusals that say that there is nothing of this name, or that it is there already. */
const OF_STATE = new Set(['NOT_FOUND', 'CONFLICT']);

/** What a call came to: done, or the code of a refusal. @throws What is none. */
async function outcome(call: () => Promise<unknown>): Promise<string> {
    try {
        await call();
        return 'done';
    } catch (error) {
        if (!(error instanceof ScanwireError)) {
            throw error;
        }
        return OF_STATE.has(error.code) ? error.code : `${error.code} ${error.field ?? ''}`;
    }
}

const names = Object.keys(SAMPLES) as OperationName[];

t.test('knows every text that an operation takes', async (t) => {
    for (const name of names) {
        const { params, query, payload } = schemas[name];
        for (const part of [params, query, payload]) {
            const keys: Readonly<Record<string, { type?: string; allow?: readonly unknown[]; flags?: { only?: boolean } }>> =
                part?.describe().keys ?? {};
            for (const [key, { type, flags }] of Object.entries(keys)) {
                const isOpen = flags?.only !== true && !['boolean', 'number'].includes(String(type));
                const isCertificate = ['ca', 'clientCertificate', 'text'].includes(key);
                const isGiven = SAMPLES[name].some((sample) => sample[key] !== undefined);
                t.ok(!isOpen || isCertificate || isGiven || !isText(key), `${name} ${key}`);
            }
        }
    }

    /** Lists of names that are known, or of numbers. */
    function isText(key: string): boolean {
        return !['signatures', 'schedule', 'workspaces', 'ids'].includes(key);
    }
});

const came = new Map<string, Map<string, string>>();

for (const [store, open] of Object.entries(STORES)) {
    t.test(`refuses or keeps it: ${store}`, async (t) => {
        const stores = await open(t);
        const { system, exporter } = await served(t, stores);
        const perform = performerOf(system, OPERATOR);
        const results = new Map<string, string>();
        came.set(store, results);

        async function asked(name: OperationName, input: Sample): Promise<unknown> {
            const source = each([Buffer.from('{"address":"10.0.0.1"}')]);
            const given = name === 'importScan' ? { ...input, source } : input;
            const answer = await perform(name, given as unknown as Input<typeof name>);
            return name === 'exportWorkspace' ? await textOf((answer as { text: AsyncIterable<string> }).text) : answer;
        }

        for (const name of names) {
            for (const [index, sample] of samplesOf(name, exporter).entries()) {
                t.notMatch(await outcome(() => asked(name, sample)), 'INVALID_INPUT', `${name} ${index} as it is`);
                for (const [kind, text] of Object.entries(UNKEPT)) {
                    for (const [path, input] of spoilt(sample, text)) {
                        const came = await outcome(() => asked(name, input as Sample));
                        results.set(`${name} ${index}, ${kind} in ${path}`, came);
                    }
                }
            }
        }

        for (const [kind, text] of Object.entries(UNKEPT)) {
            for (const [path, input] of spoilt(HOST, text)) {
                const came = await outcome(() => stores.inventory.importHosts('lab', each([input as HostInput])));
                t.match(came, /^INVALID_INPUT ./, `a host with ${kind} in ${path}`);
            }
        }

        const { exporters, deliveries } = system.webhooks;
        const known = [
            await exporters.list(),
            await Promise.all((await exporters.list()).map(({ id }) => exporters.show(id, { showUrl: true }))),
            await rowsOf(stores.inventory.workspaces.list([])),
            await rowsOf(stores.inventory.hosts.list([2])),
            await deliveries.list({ limit: 1000 }),
            await system.keys.list(),
        ];
        t.notMatch(JSON.stringify(known), REPLACEMENT, 'nothing is stored with other characters');
    });
}

t.test('is the same whatever the store', async (t) => {
    const [memory, ...others] = [...came.values()].map((results) => Object.fromEntries(results));
    t.ok(Object.keys(present(memory)).length > 400);
    for (const other of others) {
        t.strictSame(other, memory);
    }
});

/** As an attacker writes it into a path or a query: half a pair as the bytes that it would have. */
const WRITTEN = { NUL: '%00', 'half a pair': '%ED%A0%BD' } as const;

t.test('is refused in paths and queries of the console', async (t) => {
    const stores = await present(STORES['embedded database'])(t);
    const { server, exporter } = await served(t, stores);
    for (const name of names) {
        const { method, path, streamed } = endpoints[name];
        const inQuery = method === 'GET' || method === 'DELETE' || streamed === true;
        for (const sample of samplesOf(name, exporter)) {
            for (const [field, value] of Object.entries(sample)) {
                for (const [kind, bytes] of Object.entries(WRITTEN)) {
                    const isInPath = path.includes(`{${field}}`);
                    const others = Object.fromEntries(
                        Object.entries(sample).filter(([other]) => other !== field && !path.includes(`{${other}}`)),
                    );
                    const query = new URLSearchParams(others as Record<string, string>);
                    const url = path.replace(/\{(\w+)\}/g, (_, part: string) => `${sample[part]}${part === field ? bytes : ''}`);
                    if (isInPath || inQuery) {
                        const end = inQuery ? `?${query}${isInPath ? '' : `&${field}=${value}${bytes}`}` : '';
                        const { statusCode } = await server.inject({
                            method,
                            url: `/admin-console${url}${end}`,
                            headers: { ...admin, 'content-type': 'application/json' },
                            payload: streamed === true ? '{"address":"10.0.0.1"}' : '{}',
                        });
                        t.ok(refusals(kind).includes(statusCode), `${name}, ${kind} in ${field}: ${statusCode}`);
                    }
                }
            }
        }
    }

    const shown = JSON.stringify(await rowsOf(stores.inventory.workspaces.list([])));
    t.notMatch(shown, REPLACEMENT, 'nothing is stored with other characters');

    /** An id of which there is nothing need not be looked at. */
    function refusals(kind: string): readonly number[] {
        return kind === 'NUL' ? [400, 404] : [400];
    }
});

t.test('is refused by the tools of assistants', async (t) => {
    const { inventory, records } = await present(STORES['embedded database'])(t);
    const sight = { has: () => true, workspaces: null };
    const sources = { store: inventory, records };
    for (const { name, inputSchema } of toolsOf(sources, sight)) {
        for (const field of Object.keys(inputSchema.properties as object)) {
            for (const text of Object.values(UNKEPT)) {
                t.match(
                    await outcome(() => callTool(sources, name, { [field]: text }, sight)),
                    `INVALID_INPUT ${field}`,
                    `${name} ${field}`,
                );
            }
        }
    }
});

t.test('an event is sent as it was published', async (t) => {
    const bodies: string[] = [];
    const listener = createServer((request, response) => {
        void textOf(request).then((body) => {
            bodies.push(body);
            response.writeHead(204).end();
        });
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    t.teardown(() => listener.close());
    const { system } = await served(t, await present(STORES['embedded database'])(t));
    const { exporters, publish } = system.webhooks;
    const { exporter } = await exporters.create({ url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/` });
    await exporters.start(exporter.id);
    const titles = Object.values(UNKEPT);
    for (const title of titles) {
        await publish(KIND, { ...BODY, title });
    }
    await until(() => bodies.length > titles.length);
    t.same(new Set(bodies.map((body) => JSON.parse(body).title).filter((title) => titles.includes(title))), new Set(titles));
});
