import { Writable } from 'node:stream';
import type { RequestRoute, Server } from '@hapi/hapi';
import { fastify } from 'fastify';
import Joi from 'joi';
import t from 'tap';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../adapters/memory/records.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as records } from '../../plugins/https-record-schema/index.ts';
import { redact } from '../../plugins/log-and-events.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as restApi } from '../../plugins/rest-api-v2/index.ts';
import { eventSchema, exporterRoutes } from '../../plugins/webhook-exporter/routes.ts';
import { host, systemOf } from './admin-console/host.ts';

/** Names of fields of payloads that hold no secret, wherever they stand. Any other must be on the list of what is redacted. */
const HARMLESS: ReadonlySet<string> = new Set([
    ...['id', 'ids', 'name', 'owner', 'kind', 'type', 'start', 'wait', 'dryRun', 'after', 'to', 'workspace', 'address'],
    // Of a key: what it may do, not the key.
    ...['scopes', 'workspaces', 'expiresAt'],
    // Of an exporter.
    ...['collector', 'trust', 'kinds', 'filter', 'format', 'template', 'ordered', 'afterExhausted', 'signatures', 'rate', 'schedule'],
    ...['ca', 'legacy', 'keepHeaders', 'overlap'],
    // Of an event: what it tells is the application's, and no key of ours.
    ...['body', 'rules', 'idempotencyKey', 'orderKey'],
    ...['exporterId', 'failedSince', 'held', 'notSeenSince', 'boundary', 'limit_to_network'],
]);

/** Routes whose payload is checked by their handlers. */
const CHECKED_BY_HANDLER: Readonly<Record<string, Joi.ObjectSchema>> = {
    'post /webhook-exporter/events': eventSchema,
    // What a tool is asked for: names, ids, addresses.
    'post /mcp': Joi.object({}),
    // It is refused by its method.
    'delete /mcp': Joi.object({}),
};

/** A server with every plugin that has routes. */
async function everyRoute(): Promise<readonly RequestRoute[]> {
    const server: Server = await host();
    const [store, license] = [memoryInventory(), alwaysLicensed()];
    const { publish, deliveries } = server.plugins['webhook-exporter'];
    await server.register([
        { plugin: restApi, options: { store, license } },
        { plugin: records, options: { records: memoryRecords() } },
        { plugin: metasploitData, options: { store, license } },
        { plugin: mcp, options: { store, license } },
        { plugin: metrics, options: { auth: false } },
        {
            plugin: adminConsole,
            options: { system: systemOf(server), auth: 'session', authorize: () => true, actor: () => 'ada', screens: {} },
        },
    ]);
    server.route(exporterRoutes({ publish, deliveries }, { prefix: '/webhook-exporter', auth: 'token' }, 1_000_000));
    return server.table();
}

/** What a schema says of itself. */
interface Described {
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
    readonly matches?: readonly { readonly schema?: Described }[];
}

/** Paths of a payload that hold a value, as a logger names them, but those below what is redacted. */
function pathsIn({ keys = {}, items = [], matches = [] }: Described, at: string): readonly string[] {
    const below = [
        ...Object.entries(keys).map(([name, described]) => [`${at}.${name}`, described] as const),
        ...items.map((described) => [`${at}[*]`, described] as const),
        ...matches.flatMap(({ schema }) => (schema === undefined ? [] : [[at, schema] as const])),
    ];
    const found = below.flatMap(([path, described]) => (redact.includes(path) ? [path] : pathsIn(described, path)));
    return found.length === 0 ? [at] : [...new Set(found)];
}

/** The name of what stands at a path, also where it is one of many. */
function nameAt(path: string): string {
    return path.replaceAll('[*]', '').split('.').at(-1) ?? '';
}

/** A payload with a value at each of the paths. */
function filled(paths: readonly string[], valueAt: (path: string) => string): object {
    const made: Record<string, unknown> = {};
    for (const path of paths) {
        const names = path.replaceAll('[*]', '.0').split('.');
        const last = names.pop() ?? '';
        const parent = names.reduce<Record<string, unknown>>((within, name) => {
            within[name] ??= {};
            return within[name] as Record<string, unknown>;
        }, made);
        parent[last] = valueAt(path);
    }
    return made;
}

/** How each route that takes a payload describes it; null where no logger sees more of it than bytes or a text. */
async function payloads(): Promise<ReadonlyMap<string, Described | null>> {
    const taking = (await everyRoute()).filter(({ method }) => method !== 'get');
    return new Map(
        taking.map(({ method, path, settings: { payload, validate } }) => {
            const name = `${method} ${path}`;
            const schema = CHECKED_BY_HANDLER[name] ?? (validate?.payload as Joi.ObjectSchema | undefined | null);
            const isUnread = payload?.parse === false || payload?.override === 'text/plain' || payload?.output === 'stream';
            return [name, isUnread ? null : ((schema?.describe() as Described | undefined) ?? { keys: { [`of ${name}`]: {} } })] as const;
        }),
    );
}

t.test('every field of every payload is harmless or redacted, however deep', async (t) => {
    const known = await payloads();
    t.ok(known.size > 40, `${known.size} routes`);
    const redacted = new Set<string>();
    for (const [route, described] of known) {
        const paths = described === null ? [] : pathsIn(described, 'payload');
        const open = paths.filter((path) => path !== 'payload' && !redact.includes(path) && !HARMLESS.has(nameAt(path)));
        t.strictSame(open, [], `${route}: a new field is secret or not`);
        for (const path of paths.filter((one) => redact.includes(one))) {
            redacted.add(path);
        }
    }
    t.strictSame(
        redact.filter((path) => path.startsWith('payload.')).toSorted(),
        [...redacted].toSorted(),
        'none leads to what no route takes',
    );
});

t.test('a logger that has the list writes no secret of any payload, and the rest of it', async (t) => {
    const lines: string[] = [];
    const stream = new Writable({
        write(chunk, _, done) {
            lines.push(String(chunk));
            done();
        },
    });
    const { log } = fastify({ logger: { level: 'info', stream, redact: [...redact] } });
    for (const [route, described] of await payloads()) {
        const paths = described === null ? [] : pathsIn(described, 'payload').filter((path) => path !== 'payload');
        if (paths.length > 0) {
            log.info({ route, ...filled(paths, (path) => `${HARMLESS.has(nameAt(path)) ? 'SHOWN' : 'SECRET'} ${path}`) });
        }
    }
    t.ok(lines.length > 15, `${lines.length} payloads`);
    t.notMatch(lines.join(''), 'SECRET');
    for (const path of ['payload.draft.name', 'payload.draft.template', 'payload.scopes', 'payload.filter']) {
        t.match(lines.join(''), `SHOWN ${path}`);
    }
});
