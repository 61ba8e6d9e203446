import type { Server } from '@hapi/hapi';
import t from 'tap';
import { host, register, systemOf } from './host.ts';

/*
 * What the pages do for their own safety is theirs alone: a host that has them answers on its other routes as it did before.
 */

/** A host with routes of its own, one of which takes forms from other sites. */
async function hostWithRoutes(): Promise<Server> {
    const server = await host();
    server.state('own', { isSecure: false });
    server.route([
        {
            method: 'GET',
            path: '/own',
            handler: (_, h) => h.response('<p style="color: red">own</p>').type('text/html').state('own', 'mine'),
        },
        { method: 'POST', path: '/own', handler: ({ payload }) => ({ payload }) },
        { method: 'POST', path: '/admins/own', handler: ({ payload }) => ({ payload }) },
    ]);
    return server;
}

const FOREIGN = { 'sec-fetch-site': 'cross-site', origin: 'https://elsewhere.example', cookie: 'scanwire-forms=%zz; own=mine' };

/** What the host answers, as the browser of somebody gets it. */
async function answers(server: Server) {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const asked = [
        { method: 'GET', url: '/own', headers: FOREIGN },
        { method: 'POST', url: '/own', headers: { ...FOREIGN, ...form }, payload: 'a=1' },
        { method: 'POST', url: '/admins/own', headers: { ...FOREIGN, ...form }, payload: 'a=1' },
        { method: 'GET', url: '/nowhere', headers: FOREIGN },
        { method: 'OPTIONS', url: '/own', headers: FOREIGN },
    ];
    const given = await Promise.all(asked.map((one) => server.inject(one)));
    return given.map(({ statusCode, payload, headers: { date: _, ...headers } }) => ({ statusCode, payload, headers }));
}

t.test('nothing of the pages is active on other routes of the host', async (t) => {
    const before = await answers(await hostWithRoutes());
    t.match(before, [{ statusCode: 200 }, { statusCode: 200, payload: '{"payload":{"a":"1"}}' }, { statusCode: 200 }]);
    const server = await hostWithRoutes();
    await register(server, { system: systemOf(server), screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    t.same(await answers(server), before, 'status, headers and body are those of a host without pages');
    const page = await server.inject({ url: '/admin/keys', headers: { session: 'ada' } });
    t.ok(page.headers['content-security-policy'], 'on the pages themselves it is');
});
