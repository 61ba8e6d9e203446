import { server as hapiServer, type Server } from '@hapi/hapi';
import Joi from 'joi';
import { collectDefaultMetrics, Registry } from 'prom-client';
import t from 'tap';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../adapters/memory/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../../lib/license/index.ts';
import { replayCache } from '../../lib/verify/replay-cache.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookAuth } from '../../plugins/webhook-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';
import { HUSH, refusesAll, untyped, type Wrong, wrong } from './refusal.ts';

/* What a host can get wrong at the plugins: each is refused by its registration or by the start. */

const ring = keyRing({ current: 'k1', keys: { k1: new Uint8Array(32) } });
const license = alwaysLicensed();
const auth = { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } };
const exporter = { plugin: webhookExporter, options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring } };

/** What another registration of the same plugin has already, and another plugin. */
const TAKEN = /must lead to paths that no other route of the server has: \/\S* is taken/;
const api = { store: memoryInventory(), license };
const restApi = { plugin: restApiV2, options: api };
const asAnother = { instance: 'b' };

/** A plugin of the host's own, with a route at the path. */
const hostWith = (path: string): object => ({
    name: 'host',
    register: (server: Server) => server.route({ method: 'GET', path, handler: () => 'taken' }),
});

/** Registers and starts, as a host does. */
async function started(plugin: object, options: unknown, before: readonly object[] = []): Promise<void> {
    const server: Server = hapiServer({ autoListen: false, debug: false });
    try {
        await server.register(untyped(before));
        await server.register(untyped({ plugin, options }));
        await server.start();
    } finally {
        await server.stop();
    }
}

type Row = readonly [option: string, rule: RegExp, change: unknown, before?: readonly object[]];

/** Rows of a plugin: each changes one thing of options that work. What is no object stands in place of all options. */
function tableOf(plugin: { readonly name: string }, good: object, rows: readonly Row[], before: readonly object[] = []): readonly Wrong[] {
    return rows.map(([option, rule, change, first = before]) => {
        const options = typeof change === 'object' && change !== null ? { ...good, ...change } : change;
        return wrong(plugin.name, option, rule, () => started(plugin, options, first));
    });
}

/** Under these names hapi finds something in each of its tables. */
const NOT_EVERY = /must be a name that not every object has/;

const TOKEN_AUTH = tableOf(untyped(tokenAuth), auth.options, [
    ['token-auth options', /is required/, undefined],
    ['store', /is required/, { store: undefined }],
    ['store', /must have the function insert/, { store: {} }],
    ['store', /must be of type object/, { store: `postgres://u:${HUSH}@db/x` }],
    ['store', /must have a function findByDigests, or none/, { store: { ...memoryApiKeys(), findByDigests: HUSH } }],
    ['keyRing', /is required/, { keyRing: undefined }],
    ['keyRing', /must have the function seal/, { keyRing: { current: 'k1', keys: { k1: HUSH } } }],
    ['revealable', /must be a boolean/, { revealable: HUSH }],
    ['acceptForeignKeys', /must be a boolean/, { acceptForeignKeys: 'sometimes' }],
    ['lastUse', /must be a boolean/, { lastUse: 60 }],
    ['clock', /must be of type function/, { clock: new Date() }],
    ['strategy', /must be a string/, { strategy: 5 }],
    ['strategy', /must be a name that no other strategy of the server has/, { instance: 'b', strategy: 'token' }, [auth]],
    ['scheme', /must be a name that no other scheme of the server has/, { instance: 'b', scheme: 'token' }, [auth]],
    ['instance', /must be 1 to 64 letters, digits, "-" and "_"/, { instance: 'first one' }],
    ['instance', /must be a name that no other registration of the plugin has/, {}, [auth]],
    ['strategy', NOT_EVERY, { strategy: 'constructor' }],
    ['scheme', NOT_EVERY, { scheme: 'valueOf' }],
    ['mapErrors', /must be a boolean/, { mapErrors: 'all' }],
    ...Object.getOwnPropertyNames(Object.prototype).map((instance): Row => ['instance', NOT_EVERY, { instance }]),
    ['stores', /is not allowed/, { stores: memoryApiKeys() }],
]);

const resource = { path: '/workspaces/{workspace_id}/campaigns', schema: Joi.object({ id: Joi.number() }), store: memoryInventory().hosts };
const own = (change: object): object => ({ resources: [{ ...resource, ...change }] });
const standard = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };

const REST_API = tableOf(
    untyped(restApiV2),
    { store: memoryInventory(), license },
    [
        ['rest-api-v2 options', /is required/, undefined],
        ['store', /is required/, { store: undefined }],
        ['store', /must have the collection workspaces with the functions list and get/, { store: {} }],
        ['store', /must have the collection services with/, { store: { ...memoryInventory(), services: [] } }],
        ['license', /is required/, { license: undefined }],
        ['license', /must be of type object/, { license: HUSH }],
        ['license', /must have the function valid/, { license: {} }],
        ['licence', /is not allowed/, { licence: license }],
        ['auth', /must name a strategy of the server: register token-auth before/, { auth: 'session' }],
        ['auth', /must name a strategy of the server/, {}, []],
        ['auth', /must be one of \[string, false\]/, { auth: true }],
        ['auth', NOT_EVERY, { auth: 'constructor' }],
        ['timeZone', /must be the IANA name of a time zone/, { timeZone: 'Mars/Olympus' }],
        ['timeZone', /must be a string/, { timeZone: 2 }],
        ['resources', /must be an array/, { resources: resource }],
        ['resources[0].path', /must look like \/workspaces\/\{workspace_id\}\/campaigns/, own({ path: 'campaigns' })],
        ['resources[0].path', /is there twice/, own({ path: '/workspaces/{workspace_id}/hosts' })],
        ['resources[0].path', /is below no known resource/, own({ path: '/teams/{team_id}/campaigns' })],
        ['resources[0].schema', /is required/, own({ schema: undefined })],
        ['resources[0].schema', /must be a Joi schema of an object, or a Standard Schema/, own({ schema: { id: 'number' } })],
        ['resources[0].fields', /is required/, own({ schema: standard })],
        ['resources[0].fields', /has b, which is no property of jsonSchema/, own({ schema: standard, fields: ['b'], jsonSchema: {} })],
        ['resources[0].store', /must have the function get/, own({ store: { list: () => [] } })],
        ['resources[0].store', /must have a function count, or none/, own({ store: { ...memoryInventory().hosts, count: 5 } })],
        ['rateLimit.requests', /is required/, { rateLimit: {} }],
        ['rateLimit.requests', /must be greater than or equal to 1/, { rateLimit: { requests: 0 } }],
        ['rateLimit.window', /must be less than or equal to 86400/, { rateLimit: { requests: 1, window: 3_600_000 } }],
        ['rateLimit.window', /must be whole hours beyond 3600: it is in seconds/, { rateLimit: { requests: 1, window: 60_000 } }],
        ['rateLimit.redis', /must be/, { rateLimit: { requests: 1, redis: `redis://:${HUSH}@127.0.0.1` } }],
        ['rateLimit.redis', /must be a client of ioredis/, { rateLimit: { requests: 1, redis: { host: '127.0.0.1' } } }],
        ['rateLimit.by', /must be of type function/, { rateLimit: { requests: 1, by: 'address' } }],
        ['maxStreams', /must be greater than or equal to 1/, { maxStreams: 0 }],
        ['openapi', /must be of type object/, { openapi: false }],
        ['openapi.page', /must look like \/api-docs/, { openapi: { page: 'api docs' } }],
        ['openapi.public', /must be a boolean/, { openapi: { public: 'yes' } }],
        ['openapi.page', TAKEN, { openapi: { page: '/rest_api/v2/workspaces' } }],
        ['routes.prefix', TAKEN, asAnother, [auth, restApi]],
        ['routes.prefix', TAKEN, {}, [auth, hostWith('/rest_api/v2/openapi.json')]],
        ['resources[0].path', TAKEN, own({}), [auth, hostWith('/rest_api/v2/workspaces/{id}/campaigns/{campaign?}')]],
        ['resources[0].path', /is there twice/, own({ path: '/base' })],
        ['resources[0].path', /must call each id otherwise/, own({ path: '/workspaces/{id}/hosts/{id}/scans' })],
        ['resources[0].path', /must call each id otherwise/, own({ path: '/workspaces/{campaign_id}/campaigns' })],
        ['store', /must have the collection workspaces with/, { store: Promise.resolve(memoryInventory()) }],
        ['license', /must be of type object/, { license: async () => true }],
        ['instance', /is not allowed to be empty/, { instance: '' }],
    ],
    [auth],
);

const kind = (change: object): object => ({ kinds: [{ name: 'scan_finished', schema: Joi.object({ at: Joi.string() }), ...change }] });
const format = (change: object): object => ({ formats: [{ name: 'own', contentType: 'text/plain', make: () => ({}), ...change }] });
const allow = (...entries: readonly unknown[]): object => ({ egress: { allow: entries } });

const WEBHOOK_EXPORTER = tableOf(untyped(webhookExporter), exporter.options, [
    ['webhook-exporter options', /is required/, undefined],
    ['stores', /is required/, { stores: undefined }],
    ['stores.exporters', /is required/, { stores: {} }],
    ['stores.exporters', /must have the function insert/, { stores: { ...memoryWebhooks(), exporters: {} } }],
    [
        'deliveries',
        /must be of the same database as exporters/,
        { stores: { ...memoryWebhooks(), deliveries: memoryWebhooks().deliveries } },
    ],
    [
        'stores.exporters',
        /must have a function page, or none/,
        { stores: { ...memoryWebhooks(), exporters: { ...memoryWebhooks().exporters, page: [] } } },
    ],
    [
        'stores.deliveries',
        /must have attemptLists with the functions list and count, or none/,
        { stores: { ...memoryWebhooks(), deliveries: { ...memoryWebhooks().deliveries, attemptLists: 5 } } },
    ],
    ['queue', /must have a function address, or none/, { queue: { ...memoryQueue(), address: `redis://:${HUSH}@127.0.0.1` } }],
    ['queue', /is required/, { queue: undefined }],
    ['queue', /must be of type object/, { queue: memoryQueue }],
    ['queue', /must have the function ready/, { queue: { url: `redis://:${HUSH}@127.0.0.1` } }],
    ['keyRing', /is required/, { keyRing: undefined }],
    ['keyRing', /must have the function seal/, { keyRing: { k1: HUSH } }],
    ['vendor', /must be 1 to 40 letters and digits, with single dashes between them/, { vendor: 'Acme Inc.' }],
    ['vendor', /must be 1 to 40 letters and digits|is not allowed to be empty/, { vendor: '' }],
    ['window', /must be greater than or equal to 1/, { window: 0 }],
    ['window', /must be less than or equal to 10000/, { window: 1_000_000 }],
    ['breakerAfter', /must be greater than or equal to 1/, { breakerAfter: 0 }],
    ['breakerAfter', /must be less than or equal to 1000000/, { breakerAfter: Number.MAX_SAFE_INTEGER }],
    ['stopAfter', /must be greater than or equal to 1800000: it is in milliseconds/, { stopAfter: 5 }],
    ['stopAfter', /must be greater than or equal to 1800000: it is in milliseconds/, { stopAfter: 5 * 86_400 }],
    ['stopAfter', /must be greater than or equal to 1800000/, { stopAfter: -1 }],
    ['stopAfter', /must be less than or equal to 3153600000000/, { stopAfter: Number.MAX_SAFE_INTEGER }],
    ['keepFor', /must be greater than or equal to 86400000: it is in milliseconds/, { keepFor: 30 }],
    ['keepResponses', /must be a boolean/, { keepResponses: 'no' }],
    ['maxBodyBytes', /must be greater than or equal to 1000: it is in bytes/, { maxBodyBytes: 1 }],
    ['maxBodyBytes', /must be less than or equal to 67108864/, { maxBodyBytes: 1e9 }],
    ['maxBytesInFlight', /must be greater than or equal to maxBodyBytes/, { maxBodyBytes: 9000, maxBytesInFlight: 8000 }],
    ['processName', /must be a string/, { processName: 5 }],
    ['processName', /is not allowed to be empty/, { processName: '' }],
    ['processName', /must not contain control characters/, { processName: 'a\nb' }],
    ['kinds[0].name', /must be 1 to 64 letters, digits, "_", "-" and "\."/, kind({ name: 'scan finished' })],
    ['kinds[0].name', /must be new: .* exists already/, kind({ name: 'test' })],
    ['kinds[0].schema', /must be a Joi schema of an object, or a Standard Schema/, kind({ schema: Joi.string() })],
    ...[
        Joi.object({ at: Joi.string() }).external(() => {}),
        Joi.object({ at: Joi.array().items(Joi.string().external(() => {})) }),
        Joi.object({ flags: Joi.alternatives().try(Joi.number().external(() => {})) }),
    ].map((schema) => ['kinds[0].schema', /must answer at once, so no rule of it may be one of external\(\)/, kind({ schema })] as const),
    ['kinds[0].fields', /is required/, kind({ schema: standard })],
    ['kinds[0].types', /must be of type function/, kind({ types: ['investigation'] })],
    ['formats[0].name', /must be 1 to 64 small letters, digits and dashes/, format({ name: 'My Format' })],
    ['formats[0].name', /must be new: .* exists already/, format({ name: 'slack' })],
    ['formats[0].contentType', /must be 1 to 128 visible ASCII characters and spaces/, format({ contentType: 'text/plain\r\nX: y' })],
    ['formats[0].make', /is required/, format({ make: undefined })],
    ['collectors', /must be an array/, { collectors: 'default' }],
    ['collectors[0]', /must be 1 to 64/, { collectors: ['the edge'] }],
    ['concurrency', /must be less than or equal to 5000/, { concurrency: 100_000 }],
    ['drainTimeout', /must be greater than or equal to 500: it is in milliseconds/, { drainTimeout: 20 }],
    ['drainTimeout', /must be less than or equal to 3600000/, { drainTimeout: 1e9 }],
    ['attemptTimeout', /must be greater than or equal to 100: it is in milliseconds/, { attemptTimeout: 15 }],
    ['attemptTimeout', /must be less than or equal to 30000/, { attemptTimeout: 60_000 }],
    ['connectTimeout', /must be greater than or equal to 100: it is in milliseconds/, { connectTimeout: 5 }],
    ['connectTimeout', /must be less than or equal to attemptTimeout/, { connectTimeout: 9000, attemptTimeout: 8000 }],
    ['resolver', /must be one of \[dns, system\]/, { resolver: 'google' }],
    ['egress', /must be of type object/, { egress: ['10.0.0.0/8'] }],
    ['egress.allow', /must be an array/, { egress: { allow: '10.0.0.0/8' } }],
    ['egress.allow[1]', /is a URL: write its host name, or its address/, allow('10.0.0.0/8', 'http://127.0.0.1:8080')],
    ['egress.allow[0]', /is not a CIDR block: write address\/bits/, allow('10.0.0.0/99')],
    ['egress.allow[0]', /has bits set behind its prefix/, allow('10.1.2.3/8')],
    ['egress.owners.one[1]', /has bits set behind its prefix/, { egress: { allow: [], owners: { one: ['10.0.0.0/8', 'fd12::1/48'] } } }],
    ['egress.allow[0]', /must be a string/, allow(10)],
    ['egress.allow[0]', /port/, allow('*:99999')],
    ['routes', /must be of type object/, { routes: true }, [auth]],
    ['routes.prefix', /must look like \/webhook-exporter/, { routes: { prefix: 'events' } }, [auth]],
    ['routes.auth', NOT_EVERY, { routes: { auth: 'toString' } }, [auth]],
    ['routes.auth', /must name a strategy of the server/, { routes: { auth: 'session' } }, [auth]],
    ['routes.license', /must have the function valid/, { routes: { license: {} } }, [auth]],
    ['health.prefix', /must look like \/webhooks/, { health: { prefix: 'webhooks' } }],
    ['routes.prefix', TAKEN, { ...asAnother, routes: {} }, [auth, { ...exporter, options: { ...exporter.options, routes: {} } }]],
    ['health.prefix', TAKEN, { ...asAnother, health: {} }, [{ ...exporter, options: { ...exporter.options, health: {} } }]],
    ['stores', /must be of type object/, { stores: memoryWebhooks }],
    ['queue', /must have the function ready/, { queue: Promise.resolve(memoryQueue()) }],
    ['tracing', /must have the function publishing/, { tracing: Promise.resolve({}) }],
    ['rate', /must be a number/, { rate: '10/s' }],
    ['keepFor', /cannot be infinity/, { keepFor: Number.POSITIVE_INFINITY }],
    ['egress.owners', /must be an array/, { egress: { allow: [], owners: { one: '10.0.0.0/8' } } }],
    ['store', /is not allowed/, { store: memoryWebhooks() }],
]);

const RECORDS = tableOf(
    untyped(httpsRecordSchema),
    { auth: 'token' },
    [
        ['path', /must look like \/https-record-schema/, { path: 'records/' }],
        ['auth', /must name a strategy of the server/, { auth: 'nope' }],
        ['auth', NOT_EVERY, { auth: 'constructor' }],
        ['license', /must have the function valid/, { license: { file: 'x' } }],
        ['maxBytes', /must be greater than or equal to 1000: it is in bytes/, { maxBytes: 64 }],
        ['maxDecodedBytes', /must be greater than or equal to maxBytes/, { maxBytes: 2000, maxDecodedBytes: 1000 }],
        ['maxDecodedBytes', /must be greater than or equal to maxBytes/, { maxDecodedBytes: 1_000_000 }],
        ['maxLineBytes', /must be less than or equal to 268435456/, { maxLineBytes: 1e10 }],
        ['maxDecodedBytes', /must be a number/, { maxDecodedBytes: 'plenty' }],
        ['maxLineBytes', /must be greater than or equal to 1000/, { maxLineBytes: -5 }],
        ['maxReported', /must be an integer/, { maxReported: 0.5 }],
        ['records', /must have the function add/, { records: {} }],
        ['records', /must have a function count, or none/, { records: { ...memoryRecords(), count: 0 } }],
        ['enrich', /needs records, a store that can enrich an inventory/, { enrich: {} }],
        ['maxStreams', /must be greater than or equal to 1/, { maxStreams: 0 }],
        ['enrich', /needs records, a store that can enrich an inventory/, { enrich: {}, records: memoryRecords() }],
        [
            'enrich.workspace',
            /must not contain control characters/,
            { enrich: { workspace: 'a\nb' }, records: memoryRecords({ inventory: memoryInventory() }) },
        ],
        [
            'enrich.workspace',
            /must be a name other than \. and \.\., which a path cannot have/,
            { enrich: { workspace: ' .. ' }, records: memoryRecords({ inventory: memoryInventory() }) },
        ],
        ['store', /is not allowed/, { store: memoryRecords() }],
        ['path', TAKEN, asAnother, [auth, { plugin: httpsRecordSchema, options: { auth: 'token' } }]],
        ['path', /must look like \/https-record-schema/, { path: '/{x}' }],
        ['records', /must have the function add/, { records: Promise.resolve(memoryRecords()) }],
    ],
    [auth],
);

const { workspaceVulns: _, ...incomplete } = memoryInventory();

const registry = new Registry();
const measuring = { plugin: metrics, options: { auth: false, registry } };
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

const READERS = [
    ...tableOf(
        untyped(metasploitData),
        { store: memoryInventory(), license },
        [
            ['store', /must have the collection workspaceVulns/, { store: incomplete }],
            ['license', /is required/, { license: undefined }],
            ['auth', /must name a strategy of the server/, { auth: 'nope' }],
            ['auth', NOT_EVERY, { auth: 'constructor' }],
            ['queryToken', /must be a boolean/, { queryToken: HUSH }],
            ['more.loots', /must be of type function/, { more: { loots: [] } }],
            ['maxStreams', /must be greater than or equal to 1/, { maxStreams: 0 }],
            ['routes.prefix', TAKEN, asAnother, [auth, { plugin: metasploitData, options: api }]],
        ],
        [auth],
    ),
    ...tableOf(
        untyped(mcp),
        { store: memoryInventory(), license },
        [
            ['store', /is required/, { store: undefined }],
            ['store', /must have the collection workspaces with the functions list and get/, { store: {} }],
            ['records', /must have the function list/, { records: {} }],
            ['deliveries', /must be of type object/, { deliveries: [] }],
            ['license', /is required/, { license: undefined }],
            ['auth', /must name a strategy of the server/, { auth: 'nope' }],
            ['auth', NOT_EVERY, { auth: 'constructor' }],
            ['path', /must look like \/mcp/, { path: 'mcp' }],
            ['path', TAKEN, asAnother, [auth, { plugin: mcp, options: api }]],
            ['path', TAKEN, { path: '/rest_api/v2/workspaces' }, [auth, restApi]],
            ['license', /must have the function valid/, { license: Promise.resolve(license) }],
        ],
        [auth],
    ),
    ...tableOf(
        untyped(metrics),
        { auth: false },
        [
            ['auth', /is required/, { auth: undefined }],
            ['auth', /must name a strategy of the server/, { auth: 'nope' }],
            ['auth', NOT_EVERY, { auth: 'constructor' }],
            ['path', /must look like \/metrics/, { path: 'metrics' }],
            ['of', /must be the name of an instance of webhook-exporter/, { of: 'second' }],
            ['webhook-exporter', /register that before/, {}, []],
            ['registry', /must have the function metrics/, { registry: {} }],
            ['perExporter', /must be a boolean/, { perExporter: 'id' }],
            ['path', TAKEN, asAnother, [exporter, { plugin: metrics, options: { auth: false } }]],
            ['registry', /must have no metric scanwire_\w+ yet/, { ...asAnother, path: '/b', registry }, [exporter, measuring]],
            ['registry', /must have no metric process_\w+ yet/, { processMetrics: true, registry: ofProcess }],
        ],
        [auth, exporter],
    ),
];

const console = { system: { migrate: async () => [] }, auth: false as const, authorize: () => true };
const pages = { auth: 'session', screens: {} };
/** A strategy of the host's own. */
const session = {
    plugin: {
        name: 'session',
        register({ auth }: Server): void {
            auth.scheme('session', () => ({ authenticate: (_, h) => h.authenticated({ credentials: {} }) }));
            auth.strategy('session', 'session');
        },
    },
};

const CONSOLE = tableOf(
    untyped(adminConsole),
    console,
    [
        ['admin-console options', /is required/, undefined],
        ['system', /must have at least 1 key/, { system: {} }],
        ['system.keys', /must have the function create/, { system: { keys: memoryApiKeys() } }],
        ['system.webhooks.publish', /is required/, { system: { webhooks: {} } }],
        ['auth', /is required/, { auth: undefined }],
        ['auth', /must not name a strategy of token-auth/, { auth: 'token' }],
        ['auth', /must name a strategy of the server/, { auth: 'nope' }],
        ['auth', NOT_EVERY, { auth: 'constructor' }],
        ['authorize', /is required/, { authorize: undefined }],
        ['authorize', /must be of type function/, { authorize: true }],
        ['prefix', /must look like \/admin-console/, { prefix: 'admin' }],
        ['screens', /needs auth to name a strategy of the server/, { screens: {} }],
        ['system', /must have a part that is not undefined: register its plugin before/, { system: { webhooks: undefined } }],
        ['routes', /must be true without screens/, { routes: false }],
        ['prefix', TAKEN, asAnother, [{ plugin: adminConsole, options: console }]],
        [
            'screens.prefix',
            TAKEN,
            { ...asAnother, ...pages, prefix: '/b' },
            [session, { plugin: adminConsole, options: { ...console, ...pages } }],
        ],
        ['screens.texts', /must contain at least 1 items/, { auth: 'session', screens: { texts: [] } }, [session]],
        [
            'screens.frameAncestors',
            /must be sources of a/,
            { auth: 'session', screens: { frameAncestors: "'self'; script-src *" } },
            [session],
        ],
        ['screens.signOut', /must look like \/sign-out/, { auth: 'session', screens: { signOut: '//elsewhere.example' } }, [session]],
        ['actor', /is required/, { system: { audit: { record: () => {}, list: () => {} } } }],
    ],
    [auth],
);

const WEBHOOK_AUTH = tableOf(untyped(webhookAuth), { secrets: ['x'.repeat(32)] }, [
    ['secrets', /is required/, { secrets: undefined }],
    ['secrets', /must be a list of secrets or a function/, { secrets: HUSH }],
    ['secrets', /must be a list of at least one secret/, { secrets: [] }],
    ['secrets[1]', /must/, { secrets: ['x'.repeat(32), `${HUSH}\n`] }],
    ['forms[0]', /must be one of \[/, { forms: ['md5'] }],
    ['tolerance', /must be greater than or equal to 1000: it is in milliseconds/, { tolerance: 5 }],
    ['tolerance', /must be greater than or equal to 1000: it is in milliseconds/, { tolerance: 300 }],
    ['tolerance', /must be less than or equal to 86400000/, { tolerance: 1e12 }],
    ['replays', /must have the function isNew/, { replays: {} }],
    ['replays', /needs forms: \['standard-webhooks'\]/, { replays: replayCache() }],
    ['clock', /must give the time, as a Date/, { clock: Date.now }],
    ['vendor', /must be 1 to 40 letters and digits/, { vendor: 'Acme Inc.' }],
]);

for (const [name, table] of Object.entries({ TOKEN_AUTH, REST_API, WEBHOOK_EXPORTER, RECORDS, READERS, CONSOLE, WEBHOOK_AUTH })) {
    t.test(`refuses ${table.length} wrong configurations: ${name}`, (t) => refusesAll(t, table));
}

t.test('starts with abilities of stores that are null, as with none, and with a collector that is named twice', async (t) => {
    const { exporters, ...stores } = memoryWebhooks();
    Object.assign(exporters, { notices: null, subscribers: null });
    Object.assign(stores.deliveries, { listen: null, activity: null, discard: null, content: null });
    const { select: __, count: ___, listText: ____, ...rows } = memoryInventory().hosts;
    const server = hapiServer({ debug: false });
    await server.register(untyped(auth));
    await server.register(
        untyped({ ...restApi, options: { ...api, ...own({ store: { ...rows, select: null, count: null, listText: null } }) } }),
    );
    const options = { ...exporter.options, stores: { exporters, ...stores }, collectors: ['edge', 'edge'] };
    await server.register(untyped({ ...exporter, options }));
    await server.initialize();
    t.teardown(() => server.stop());
    const { deliveries } = server.plugins['webhook-exporter'];
    t.equal(deliveries.discards, false);
    await t.rejects(deliveries.activity(), { code: 'MISCONFIGURED' });
    const { key } = await server.plugins['token-auth'].create('ci');
    const { statusCode } = await server.inject({ url: '/rest_api/v2/workspaces/1/campaigns?limit=1', headers: { token: key } });
    t.equal(statusCode, 400, 'it has no pages');
});
