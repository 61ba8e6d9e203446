import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { shows, showsDuring } from '../../bench/shows.ts';

const RATE = 100;

t.test('asks so many times a second with the key, whether those before are answered or not', async (t) => {
    const waiting: (() => void)[] = [];
    let together = 3;
    const server = createServer(({ headers }, response) => {
        response.statusCode = headers.token === 'good' ? 200 : 403;
        waiting.push(() => response.end('{}'));
        if (waiting.length === together) {
            for (const answer of waiting.splice(0)) {
                answer();
            }
        }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

    const { latencies, failed } = await shows({ url, key: 'good' }, RATE, 9);
    t.equal(latencies.length, 9);
    t.equal(failed, 0);
    t.ok(Math.max(...latencies) >= 1_000 / RATE, 'who comes first waits for the others');
    t.equal((await shows({ url, key: 'bad' }, RATE, 3)).failed, 3);

    together = 1;
    const third = new Promise<string>((resolve) => {
        let seen = 0;
        server.on('request', () => {
            seen += 1;
            if (seen === 3) {
                resolve('done');
            }
        });
    });
    const during = await showsDuring({ url, key: 'good' }, RATE, () => third);
    t.equal(during.result, 'done');
    t.equal(during.failed, 0);
    t.ok(during.latencies.length >= 3);
});
