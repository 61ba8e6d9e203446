import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { unauthorized } from '@hapi/boom';
import { server as hapiServer, type Server, type ServerOptions } from '@hapi/hapi';
import pg from 'pg';
import type { Test } from 'tap';
import { redisQueue } from '../../../adapters/bullmq/index.ts';
import { memoryApiKeys, memoryAudit, memoryInventory, memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { postgresStores } from '../../../adapters/postgres/index.ts';
import { type AuditStore, auditTrail } from '../../../lib/audit/audit-trail.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import type { ApiKeyStore } from '../../../lib/keys/store.ts';
import { issueLicense, newLicenseKeyPair, signedLicense } from '../../../lib/license/index.ts';
import type { DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import type { WebhookStores } from '../../../lib/webhooks/options.ts';
import { type AdminConsoleOptions, plugin as adminConsole, type System } from '../../../plugins/admin-console/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../../plugins/webhook-exporter/index.ts';
import { migratedDatabase, migratedMemory } from '../../support/migrated-database.ts';
import { required } from '../../support/required.ts';

/** What the host's own authentication makes of the header `session`. */
export const SESSIONS: Record<string, readonly string[]> = { ada: ['admin'], eve: ['reader'] };

export const admin = { session: 'ada' };

/** The body of an event. */
export const investigation: InvestigationCreated = {
    timestamp: '2026-11-21T09:30:00Z',
    title: 'One',
    link: 'https://example.com/1',
    investigationId: '6f0c8b1e-3c5f-4f1a-9b8e-2d0a7c4e5f61',
    investigationRrn: 'rrn:acme:1',
    actors: { users: [], assets: [] },
};

/** What keeps what the plugins of a host have. */
export interface Kept {
    readonly apiKeys: ApiKeyStore;
    readonly webhooks: WebhookStores;
    readonly queue: DeliveryQueue;
    readonly audit: AuditStore;
}

function inMemory(): Kept {
    return { apiKeys: memoryApiKeys(), webhooks: memoryWebhooks(), queue: memoryQueue(), audit: memoryAudit() };
}

/** In the embedded database, as `scanwire serve` has it. */
export async function embedded(t: Test): Promise<Kept> {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const { apiKeys, webhooks, audit } = postgresStores({ pool });
    return { apiKeys, webhooks, queue: memoryQueue(), audit };
}

/** In a database of the test's own, with a queue on Redis. */
export async function onServers(t: Test): Promise<Kept> {
    const database = await migratedDatabase();
    t.teardown(() => database.drop());
    const pool = new pg.Pool({ connectionString: database.url });
    t.teardown(() => pool.end());
    const { apiKeys, webhooks, audit } = postgresStores({ pool });
    const queue = redisQueue({ url: required('REDIS_URL'), prefix: `screens-${randomBytes(6).toString('hex')}`, onWarning: () => {} });
    t.teardown(() => queue.close());
    return { apiKeys, webhooks, queue, audit };
}

/** A host with people who sign in, and with the plugins that the console administers. */
export async function host(options: ServerOptions = {}, { apiKeys, webhooks, queue }: Kept = inMemory()): Promise<Server> {
    const server = hapiServer(options);
    server.auth.scheme('session', () => ({
        authenticate(request, h) {
            const scope = SESSIONS[String(request.headers.session)];
            return scope === undefined
                ? h.unauthenticated(unauthorized('Sign in first'))
                : h.authenticated({ credentials: { scope: [...scope], user: { name: String(request.headers.session) } } });
        },
    }));
    server.auth.strategy('session', 'session');
    const sealing = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    await server.register([
        { plugin: tokenAuth, options: { store: apiKeys, keyRing: sealing } },
        {
            plugin: webhookExporter,
            options: { stores: webhooks, queue, keyRing: sealing, egress: { allow: ['127.0.0.0/8'] } },
        },
    ]);
    return server;
}

const { privateKey, publicKey } = newLicenseKeyPair();
const year = (number: number): Date => new Date(Date.UTC(number, 0));

/** A licence that can be installed. */
export const VALID_LICENSE: string = await issueLicense({ holder: 'Acme', notBefore: year(2000), expires: year(2200) }, privateKey);

/** All that the console can administer; no licence is installed yet. */
export function systemOf(server: Server, { audit }: Pick<Kept, 'audit'> = { audit: memoryAudit() }): System {
    let installed: string | null = null;
    const license = signedLicense({ read: async () => installed, publicKey });
    const applied = ['0001'];
    return {
        keys: server.plugins['token-auth'],
        webhooks: server.plugins['webhook-exporter'],
        inventory: memoryInventory(),
        license: {
            inspect: license.inspect,
            install(text) {
                installed = text;
                return license.inspect();
            },
            trust: () => license.inspect(),
        },
        migrate: async () => applied.splice(0),
        audit: auditTrail({ store: audit, onError: (error) => server.log(['error'], error) }),
    };
}

/** The console of a host, for administrators. */
export async function register(server: Server, options: Partial<AdminConsoleOptions>): Promise<void> {
    await server.register({
        plugin: adminConsole,
        options: {
            system: {},
            auth: 'session',
            authorize: ({ auth }) => auth.credentials.scope?.includes('admin') === true,
            actor: ({ auth }) => (auth.credentials.user as unknown as { readonly name: string }).name,
            ...options,
        },
    });
}

/** URL of a receiver that takes everything, unless it is told what to answer with. */
export async function receiver(
    t: Test,
    status: (request: IncomingMessage) => number = () => 204,
    headers: OutgoingHttpHeaders = {},
): Promise<string> {
    const server = createServer(
        (request, response) => void request.resume().on('end', () => response.writeHead(status(request), headers).end()),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A receiver whose answer the test may change. */
export async function answering(t: Test): Promise<{ status: number; received: number; url: string; body: string }> {
    const state = { status: 204, received: 0, url: '', body: '' };
    const server = createServer((request, response) => {
        request.resume().on('end', () => {
            state.received += 1;
            response.writeHead(state.status).end(state.status === 204 ? undefined : state.body);
        });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return state;
}
