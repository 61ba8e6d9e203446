/*
 * Another project's proxy, `proxy-chain`, on the way to a receiver.
 */
import { Server } from 'proxy-chain';
import t from 'tap';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

t.test('goes through a proxy that wants user and password, and is refused without', async (t) => {
    const proxy = new Server({
        port: 0,
        host: '127.0.0.1',
        prepareRequestFunction: ({ username, password }) => ({ requestAuthentication: username !== 'siem' || password !== 'p@ss:word' }),
    });
    await proxy.listen();
    t.teardown(() => proxy.close(true));
    const came: (string | undefined)[] = [];
    const url = await secureServer(t, (request, response) => {
        came.push(request.headers.host);
        request.resume().on('end', () => response.writeHead(204).end());
    });
    const sender = loopbackSender(t);
    const send = (user: string, to = url) => {
        const authentication = { ca: ROOT.cert, proxy: { url: `http://${user}127.0.0.1:${proxy.port}` } };
        return sender.send({ exporterId: 'e', url: to, trust: 'strict', headers: [], authentication, body: Buffer.from('{}') });
    };
    for (const body of ['first', 'second']) {
        t.match(await send('siem:p%40ss%3Aword@'), { code: 'delivered', status: 204 }, body);
    }
    t.match(await send('siem:wrong@'), { code: 'proxy_refused', detail: /407/ });
    t.match(await send(''), { code: 'proxy_refused', detail: /407/ });
    const nowhere = await send('siem:p%40ss%3Aword@', 'https://good.test:1');
    t.match(nowhere, { code: 'proxy_failed', detail: 'The proxy closed the connection without an answer' });
    t.same(came, [new URL(url).host, new URL(url).host]);
});
