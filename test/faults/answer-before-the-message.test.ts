import diagnostics from 'node:diagnostics_channel';
import type { Server, ServerInjectResponse } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { exporterRoutes } from '../../plugins/webhook-exporter/routes.ts';
import { admin, embedded, host, investigation, type Kept, onServers, receiver, register, systemOf } from '../plugins/admin-console/host.ts';

const KIND = 'idr_investigation_created';
const EVENTS = 5;

/** What went out of the process: answers to who publishes, and POSTs to the receiver. */
function goingOut(t: Test, server: Server, path: string): string[] {
    const went: string[] = [];
    server.ext('onPreResponse', ({ method }, h) => {
        if (method === 'post') {
            went.push('answer');
        }
        return h.continue;
    });
    const onHeaders = (message: unknown): void => {
        if ((message as { readonly request: { readonly path: string } }).request.path === path) {
            went.push('message');
        }
    };
    diagnostics.subscribe('undici:client:sendHeaders', onHeaders);
    t.teardown(() => diagnostics.unsubscribe('undici:client:sendHeaders', onHeaders));
    return went;
}

/** A server that sends to a receiver, to which it has a connection. */
async function sending(t: Test, kept: Kept): Promise<Server> {
    const server = await host({}, kept);
    await register(server, { system: systemOf(server, kept) });
    const { publish, deliveries, exporters } = server.plugins['webhook-exporter'];
    const access = { prefix: '/webhook-exporter', auth: 'token', license: alwaysLicensed() };
    server.route(exporterRoutes({ publish, deliveries }, access, 1_000_000));
    await server.start();
    t.teardown(() => server.stop());
    const { exporter } = await exporters.create({ url: `${await receiver(t)}hook` });
    await exporters.start(exporter.id);
    return server;
}

for (const [where, opened] of Object.entries({ embedded, 'on servers': onServers })) {
    t.test(`the message of an event goes out before the answer to who published it: ${where}`, async (t) => {
        const server = await sending(t, await opened(t));
        const { key } = await server.plugins['token-auth'].create('program', { scopes: ['events:publish'] });
        const ways: Readonly<Record<string, () => Promise<ServerInjectResponse>>> = {
            'the admin API': () =>
                server.inject({ method: 'POST', url: `/admin-console/events/${KIND}`, headers: admin, payload: { body: investigation } }),
            'a key': () =>
                server.inject({
                    method: 'POST',
                    url: '/webhook-exporter/events',
                    headers: { token: key },
                    payload: { kind: KIND, body: investigation },
                }),
        };
        // The connection to the receiver is made for the first.
        await ways['a key']?.();
        await arrived(server);
        const went = goingOut(t, server, '/hook');
        for (const [way, publish] of Object.entries(ways)) {
            for (let event = 1; event <= EVENTS; event += 1) {
                went.length = 0;
                const { statusCode } = await publish();
                t.equal(Math.floor(statusCode / 100), 2);
                t.strictSame(went, ['message', 'answer'], `event ${event} by ${way}`);
                await arrived(server);
            }
        }
    });
}

/** Resolves once all has been sent. */
async function arrived(server: Server): Promise<void> {
    const { deliveries } = server.plugins['webhook-exporter'];
    while ((await deliveries.list({ limit: 1 })).some(({ finishedAt }) => finishedAt === null)) {
        // Each look is a statement.
    }
}
