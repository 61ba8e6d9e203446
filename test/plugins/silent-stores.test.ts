import { server as hapiServer, type Server } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys, memoryAudit, memoryInventory, memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { memoryRecords } from '../../adapters/memory/records.ts';
import { SCOPES } from '../../lib/keys/scopes.ts';
import type { System } from '../../plugins/admin-console/index.ts';
import { plugin as recordPlugin } from '../../plugins/https-record-schema/index.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as webhookAuth } from '../../plugins/webhook-auth/index.ts';
import { exporterRoutes } from '../../plugins/webhook-exporter/routes.ts';
import { freeTime, holdTime, timed, timeIsFree, wait } from '../support/passing-time.ts';
import { admin, host, investigation, register, systemOf } from './admin-console/host.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const NEVER = new Promise<never>(() => {});

/** A store that takes so long for each answer while it is told to, and for ever where that is no number of milliseconds. */
class Silence {
    milliseconds: number | 'ever' = 0;
    /** Parts of stores are told apart by what they are, so that each has one stand-in. */
    readonly #silent = new WeakMap<object, object>();

    of<Store extends object>(store: Store): Store {
        const known = (this.#silent.get(store) as Store | undefined) ?? this.#madeOf(store);
        this.#silent.set(store, known);
        return known;
    }

    #madeOf<Store extends object>(store: Store): Store {
        return new Proxy(store, {
            get: (target, name) => {
                const value: unknown = Reflect.get(target, name);
                if (typeof value === 'function') {
                    return (...input: unknown[]) => this.#answer(() => Reflect.apply(value, target, input));
                }
                return typeof value === 'object' && value !== null && typeof name === 'string' ? this.of(value) : value;
            },
        });
    }

    #answer(ask: () => unknown): unknown {
        if (this.milliseconds === 0) {
            return ask();
        }

        const answer = this.milliseconds === 'ever' ? NEVER : wait(this.milliseconds).then(ask);
        const next = async (): Promise<IteratorResult<unknown>> => {
            await answer;
            return { done: true, value: undefined };
        };
        const iterator = { next, return: async () => ({ done: true, value: undefined }), [Symbol.asyncIterator]: () => iterator };
        return Object.assign(Promise.resolve(answer), iterator);
    }
}

/** A host whose stores are all silent when they are told to be, and a key for what takes one. */
async function silentHost() {
    const silence = new Silence();
    const kept = {
        apiKeys: memoryApiKeys(),
        webhooks: silence.of(memoryWebhooks()),
        queue: memoryQueue(),
        audit: silence.of(memoryAudit()),
    };
    const server = await host({ debug: false }, { ...kept, apiKeys: silence.of(kept.apiKeys) });
    const system: System = { ...systemOf(server, kept), inventory: silence.of(memoryInventory()) };
    const { license } = system;
    await register(server, {
        system: { ...system, license: { ...license, inspect: silence.of({ inspect: () => license.inspect() }).inspect } },
        screens: {},
    });
    await server.register([
        { plugin: recordPlugin, options: { records: silence.of(memoryRecords()), auth: false } },
        { plugin: metrics, options: { auth: false } },
    ]);
    const { publish, deliveries } = server.plugins['webhook-exporter'];
    server.auth.scheme('anybody', () => ({ authenticate: (_, h) => h.authenticated({ credentials: {} }) }));
    server.auth.strategy('anybody', 'anybody');
    server.route(exporterRoutes({ publish, deliveries }, { prefix: '/webhook-exporter', auth: 'anybody' }, 1_000_000));
    server.route({ method: 'GET', path: '/own', options: { auth: 'token' }, handler: () => 'in' });
    const { key } = await server.plugins['token-auth'].create('all', { scopes: SCOPES });
    return { server, silence, key };
}

async function asked(server: Server, method: string, url: string, payload?: object, headers: Record<string, string> = admin) {
    const answer = await server.inject({ method, url, headers, ...(payload !== undefined && { payload }) });
    return { status: answer.statusCode, body: answer.payload };
}

/** What a route cannot be asked without. */
const QUERIES: Readonly<Record<string, string>> = {
    '/admin-console/export': '?workspace=default&format=jsonl',
    '/admin-console/hosts': '?workspace=default',
    '/admin-console/hosts/{address}': '?workspace=default',
    '/admin-console/deliveries/activity': '?span=hour',
};

/** The path of a route, with something in the place of each part that varies. */
function pathOf(template: string): string {
    const filled = template
        .replace('/records/{id}', '/records/7')
        .replace('{address}', '192.0.2.1')
        .replace('{name}', 'default')
        .replace(/\{\w+[?*]?\}/g, ID);
    return filled + (QUERIES[template] ?? '');
}

/** They say what they know, whatever the store says: that it is silent is part of it. */
const ANSWERED: readonly string[] = ['/admin-console/doctor', '/metrics', '/admin', '/https-record-schema'];
/** Pages of a form alone, and what leads elsewhere. */
const WITHOUT_STORE =
    /^\/admin\/(?:keys\/new|overview\/sample|keys\/\{id\}\/|exporters\/\{id\}\/(?!edit)|deliveries\/\{id\}\/|deliveries\/replays\/\{id\})/;
/** Streams, which go on for as long as somebody looks; files; the route of the application. */
const OTHERS = /\/live$|\/assets\/|^\/own$/;

/* Files that are run by one process share what stands outermost. */
t.test('stores that say nothing', async (t) => {
    const { server, silence, key } = await silentHost();
    const paths = server.table().flatMap(({ method, path }) => (method === 'get' && !OTHERS.test(path) ? [path] : []));
    const drafted = { kind: 'idr_investigation_created', body: investigation };
    const questions = [
        ['/admin-console/drafts/preview', { draft: { id: ID }, ...drafted }],
        [`/admin-console/exporters/${ID}/explain`, drafted],
        [`/admin-console/exporters/${ID}/preview`, drafted],
    ] as const;

    t.test('whatever only reads is answered at once as long as they answer', async (t) => {
        t.ok(paths.length > 40, `${paths.length} routes`);
        for (const path of paths) {
            const { status, body } = await asked(server, 'GET', pathOf(path));
            t.ok(status < 500, `${path}: ${status} ${status < 500 ? '' : body}`);
        }
        t.equal((await asked(server, 'GET', '/own', undefined, { token: key })).status, 200);
        await timeIsFree();
    });

    t.beforeEach(holdTime);
    t.afterEach(async () => {
        silence.milliseconds = 0;
        await freeTime();
    });

    t.test('whatever only reads is a 503 in less than 10 s', async (t) => {
        silence.milliseconds = 'ever';
        for (const path of paths) {
            const { status, took } = await timed(asked(server, 'GET', pathOf(path)));
            t.equal(status === 503, !ANSWERED.includes(path) && !WITHOUT_STORE.test(path), `${path}: ${status}`);
            t.ok(took < 10_000, `${path}: after ${took} ms`);
        }
        for (const [path, payload] of questions) {
            const { status, took } = await timed(asked(server, 'POST', path, payload));
            t.equal(status, 503, path);
            t.ok(took < 10_000, `${path}: after ${took} ms`);
        }
    });

    t.test('the doctor and a scrape say that they are silent', async (t) => {
        silence.milliseconds = 'ever';
        const { answer: diagnosis } = await timed(asked(server, 'GET', '/admin-console/doctor'));
        t.match(JSON.parse(diagnosis?.body ?? ''), {
            healthy: false,
            findings: [{ part: 'store', state: 'wrong', text: /has not answered/ }],
        });
        const { answer: scrape } = await timed(asked(server, 'GET', '/metrics'));
        t.match(scrape, { status: 200, body: /^scanwire_ready\{part="store"\} 0$/m });
        t.notMatch(scrape?.body, /^scanwire_deliveries\{/m);
    });

    t.test('the look-up of a key is a 503 in less than 10 s, also on a route of the application', async (t) => {
        silence.milliseconds = 'ever';
        const { status, took } = await timed(asked(server, 'GET', '/own', undefined, { token: key }));
        t.equal(status, 503);
        t.ok(took >= 9_000 && took < 10_000, `after ${took} ms`);
    });

    t.test('so are a licence and the secrets of webhooks', async (t) => {
        const others = hapiServer({ debug: false });
        await others.register([
            { plugin: recordPlugin, options: { license: { valid: () => NEVER } } },
            { plugin: webhookAuth, options: { secrets: () => NEVER } },
        ]);
        others.route({ method: 'POST', path: '/hook', options: { auth: 'webhook' }, handler: () => 'taken' });
        const signed = { 'webhook-id': 'one', 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' };
        for (const [method, path] of [
            ['GET', '/https-record-schema'],
            ['POST', '/hook'],
        ] as const) {
            const { status, took } = await timed(asked(others, method, path, method === 'POST' ? {} : undefined, signed));
            t.equal(status, 503, path);
            t.ok(took >= 9_000 && took < 10_000, `${path}: after ${took} ms`);
        }
    });

    t.test('a store that takes 4 s for each answer is waited for, the look-up of a key too', async (t) => {
        silence.milliseconds = 4_000;
        const { status, took } = await timed(asked(server, 'GET', '/own', undefined, { token: key }));
        t.equal(status, 200);
        t.ok(took >= 4_000 && took < 5_000, `after ${took} ms`);
        t.match(await timed(asked(server, 'GET', '/https-record-schema/records/7')), { status: 404 });
        t.match(await timed(asked(server, 'GET', '/admin-console/keys')), { status: 200 });
        t.match(await timed(asked(server, 'GET', `/admin-console/deliveries/${ID}`)), { status: 404 });
    });

    t.test('what changes something takes as long as it takes', async (t) => {
        silence.milliseconds = 12_000;
        const { status, took } = await timed(asked(server, 'POST', '/admin-console/keys', { name: 'slow' }));
        t.equal(status, 200);
        t.ok(took > 20_000, `after ${took} ms`);
        const expiring = { workspace: 'default', notSeenSince: '2000-01-01', dryRun: true };
        const dryRun = await timed(asked(server, 'POST', '/admin-console/hosts/expire', expiring));
        t.equal(dryRun.status, 200);
        t.ok(dryRun.took >= 12_000, `a dry run too: after ${dryRun.took} ms`);
    });
});
