import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import t, { type Test } from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { Authentication } from '../../lib/webhooks/exporters/authentication.ts';
import { httpSender, type Message } from '../../lib/webhooks/sending/http-sender.ts';
import { ROOT, secureServer } from '../support/token-server.ts';

/*
 * Owners whose exporters try to call what is open to the deployment or to another owner: with rows that were changed past all checks, by names that lead
 * there, through a proxy or to a token server. Nothing arrives. `serve` opens addresses to all owners alike: those of one are an option of hosts.
 */

/** Open to `ann` and to nobody else; the deployment has an address of its own. */
const guard = egressGuard({ allow: ['127.0.0.2'], owners: { ann: ['127.0.0.1'] } });

function sender(t: Test, address: string) {
    const self = httpSender({ guard, lookup: (_name, _options, done) => done(null, [{ address }]) });
    t.teardown(() => self.close());
    return self;
}

function message(url: string, owner: string | null, authentication: Authentication | null = null): Message {
    return { exporterId: 'one that changed hands', owner, url, trust: 'strict', headers: [], authentication, body: Buffer.from('{}') };
}

const BLOCKED = { code: 'address_blocked', status: null };

async function plainServer(t: Test, came: string[], address: string): Promise<number> {
    const server = createServer((request, response) => {
        came.push(String(request.url));
        response.writeHead(204).end();
    });
    server.on('connect', (request, socket) => {
        came.push(`CONNECT ${request.url}`);
        const target = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
            socket.write('HTTP/1.1 200 OK\r\n\r\n');
            socket.pipe(target).pipe(socket);
        });
        target.on('error', () => socket.destroy());
        socket.on('error', () => target.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return (server.address() as AddressInfo).port;
}

t.test('calls the receivers that are open to the owner, by address and by name', async (t) => {
    const came: string[] = [];
    const [ofAnn, ofAll] = [await plainServer(t, came, '127.0.0.1'), await plainServer(t, came, '127.0.0.2')];
    for (const [address, port, owners] of [
        ['127.0.0.1', ofAnn, ['ann']],
        ['127.0.0.2', ofAll, ['bob', null]],
    ] as const) {
        const own = sender(t, address);
        for (const owner of ['ann', 'bob', null]) {
            for (const host of [address, 'receiver.test']) {
                const open = (owners as readonly unknown[]).includes(owner);
                const path = `/${owner}/${host}`;
                const outcome = await own.send(message(`http://${host}:${port}${path}`, owner));
                t.match(outcome, open ? { code: 'delivered' } : BLOCKED, path);
                t.equal(came.includes(path), open, path);
                came.length = 0;
            }
        }
    }
});

t.test('reaches proxies and token servers by the same rule', async (t) => {
    const came: string[] = [];
    const proxy = { url: `http://127.0.0.1:${await plainServer(t, came, '127.0.0.1')}` };
    const origin = await secureServer(t, (request, response) => {
        came.push(String(request.url));
        const token = JSON.stringify({ access_token: 'token', token_type: 'Bearer' });
        response.writeHead(200, { 'content-type': 'application/json' }).end(token);
    });
    const oauth = { tokenUrl: `${origin}/token`, clientId: 'id', clientSecret: 'secret', ca: ROOT.cert };
    const own = sender(t, '127.0.0.1');
    for (const [name, authentication] of [
        ['proxy', { ca: ROOT.cert, proxy }],
        ['token', { ca: ROOT.cert, oauth }],
    ] as const) {
        const ofAnn = await own.send(message(`${origin}/${name}`, 'ann', authentication));
        t.match(ofAnn, { code: 'delivered' }, `${name}: ${ofAnn.detail}`);
        t.ok(came.splice(0).length > 1);
        t.match(await own.send(message(`${origin}/${name}`, 'bob', authentication)), { status: null });
        t.strictSame(came, [], name);
    }

    // The receiver itself is open to both, and the proxy to one.
    const receiver = await plainServer(t, came, '127.0.0.2');
    const direct = `http://127.0.0.2:${receiver}/`;
    t.match(await own.send(message(direct, 'bob')), { code: 'delivered' });
    came.length = 0;
    t.match(await own.send(message(direct, 'bob', { proxy })), { status: null, detail: /may not be called/ });
    t.strictSame(came, []);
});
