import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs';
import { devNull } from 'node:os';
import t from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';

/*
 * A process that is suspended, or busy with something else, finds its timers over and the answers of receivers in its sockets. They have come in
 * time, whatever it looks at first.
 */

/** In a process of its own, since this one stands still. Answers each request after so many milliseconds; `/silent` never. */
const RECEIVER = `
    const server = require('node:http').createServer(({ url }, response) => {
        url === '/silent' || setTimeout(() => response.writeHead(204).end(), 60);
    });
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;
const ATTEMPT_TIMEOUT = 1_000;
const guard = egressGuard({ allow: ['127.0.0.0/8'] });

function standStill(milliseconds: number): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/** What the process may be doing when it is held up. */
const MOMENTS: Readonly<Record<string, (act: () => void) => void>> = {
    'in a timer': (act) => void setTimeout(act, 5),
    'after the sockets were read': (act) => void setImmediate(act),
    'while they are read': (act) => readFile(devNull, act),
};

async function receiver(t: Test): Promise<string> {
    const child = spawn(process.execPath, ['-e', RECEIVER], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => child.kill('SIGKILL'));
    const [port] = await once(child.stdout, 'data');
    return `http://127.0.0.1:${String(port).trim()}`;
}

type Test = Pick<typeof t, 'teardown'>;

const message = (url: string) => ({ exporterId: 'one', url, trust: 'strict', headers: [], body: Buffer.from('{}') }) as const;

t.test('an answer that came while the process stood still has come', async (t) => {
    const url = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: ATTEMPT_TIMEOUT, connectTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    t.match(await sender.send(message(url)), { code: 'delivered' });
    for (const [moment, whenever] of Object.entries(MOMENTS)) {
        for (const newConnection of [false, true]) {
            const sent = sender.send({ ...message(url), newConnection });
            // The request has to be on its way.
            await new Promise((resolve) => setTimeout(resolve, 20));
            whenever(() => standStill(ATTEMPT_TIMEOUT + 300));
            t.match(await sent, { code: 'delivered' }, moment);
        }
    }
});

t.test('a connection that was made meanwhile is there', async (t) => {
    const url = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: 30_000, connectTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    const sent = sender.send({ ...message(url), newConnection: true });
    standStill(ATTEMPT_TIMEOUT + 300);
    t.match(await sent, { code: 'delivered' });
});

t.test('nobody is blamed for what a process did not see', async (t) => {
    const url = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    const sent = sender.send(message(`${url}/silent`));
    await new Promise((resolve) => setTimeout(resolve, 20));
    standStill(ATTEMPT_TIMEOUT + 1_200);
    t.match(await sent, { code: 'interrupted', detail: /^This process stood still for 1\d\d\d ms: / });
    t.match(await sender.send(message(`${url}/silent`)), { code: 'headers_timeout' }, 'but for what it saw');

    const asking = httpSender({ guard, dnsTimeout: ATTEMPT_TIMEOUT, lookup: () => {} });
    t.teardown(() => asking.close());
    const asked = asking.send(message('http://silent.example.com/'));
    standStill(ATTEMPT_TIMEOUT + 1_200);
    t.match(await asked, { code: 'interrupted' });
    t.match(await asking.send(message('http://silent.example.com/')), { code: 'dns_timeout' });
});
