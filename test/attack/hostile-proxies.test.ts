import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { endpoint } from '../support/endpoint.ts';
import { HOSTILE_PROXIES } from '../support/hostile-proxies.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

/*
 * Proxies that answer something else than they should: none may hold up an attempt, fill the memory, or put words into the receiver's mouth.
 */

for (const [name, [serve, detail]] of Object.entries(HOSTILE_PROXIES)) {
    t.test(`a proxy that ${name} costs one attempt and nothing more`, async (t) => {
        const hostile = await endpoint((socket) => socket.once('data', () => serve(socket)));
        t.teardown(() => hostile.close());
        const came: string[] = [];
        const receiver = await secureServer(t, (request, response) => {
            came.push(String(request.url));
            response.writeHead(204).end();
        });
        for (const url of [receiver, receiver.replace('https', 'http')]) {
            const outcome = await loopbackSender(t, { connectTimeout: 1_000 }).send({
                exporterId: 'e',
                url,
                trust: 'strict',
                headers: [['X-Secret', 'hidden']],
                authentication: {
                    proxy: { url: `http://user:hidden@127.0.0.1:${hostile.port}` },
                    ...(url === receiver && { ca: ROOT.cert }),
                },
                body: Buffer.from('{"hidden":1}'),
            });
            t.match(outcome, { code: 'proxy_failed', status: null });
            t.equal(outcome.detail, detail.replace('MS', '1000'));
            t.notMatch(JSON.stringify(outcome), /hidden|mail\.test/);
        }
        t.same(came, []);
        t.notMatch(hostile.received(), /hidden/, 'the message waits for the tunnel');
        await until(() => hostile.open() === 0);
    });
}
