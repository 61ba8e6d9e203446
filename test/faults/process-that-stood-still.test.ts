import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs';
import { devNull } from 'node:os';
import t, { type Test } from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { certificate } from '../support/certificates.ts';
import { loopbackSender, ROOT } from '../support/token-server.ts';

/*
 * A process that is suspended, or busy with something else, finds its timers over and the answers of receivers in its sockets. They have come in
 * time, whatever it looks at first.
 */

/** In a process of its own, since this one stands still. Prints a line for each request and answers it after so many milliseconds; `/silent` never. */
const RECEIVER = `
    const server = require('node:http').createServer(({ url }, response) => {
        console.log('asked');
        url === '/silent' || setTimeout(() => response.writeHead(204).end(), 60);
    });
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;
/** The same of a token server, for whose requests a sender takes half of an attempt. */
const TOKEN_SERVER = `
    const { KEY: key, CERT: cert } = process.env;
    const server = require('node:https').createServer({ key, cert }, ({ url }, response) => {
        console.log('asked');
        const token = JSON.stringify({ access_token: 'token', token_type: 'Bearer', expires_in: 3600 });
        url === '/silent' || setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(token), 300);
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

interface Peer {
    readonly url: string;
    /** Resolves when the next request has come there, so that it is on its way and its answer is not here yet. */
    asked(): Promise<unknown>;
}

async function served(t: Test, script: string, origin: string, env: NodeJS.ProcessEnv = {}): Promise<Peer> {
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
    t.teardown(() => child.kill('SIGKILL'));
    const [port] = await once(child.stdout, 'data');
    return { url: `${origin}:${String(port).trim()}`, asked: () => once(child.stdout, 'data') };
}

const receiver = (t: Test): Promise<Peer> => served(t, RECEIVER, 'http://127.0.0.1');

async function tokenServer(t: Test): Promise<Peer> {
    const { key, cert } = await certificate({ authority: ROOT });
    return await served(t, TOKEN_SERVER, 'https://good.test', { KEY: key, CERT: cert });
}

const message = (url: string) => ({ exporterId: 'one', url, trust: 'strict', headers: [], body: Buffer.from('{}') }) as const;

t.test('an answer that came while the process stood still has come', async (t) => {
    const { url, asked } = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: ATTEMPT_TIMEOUT, connectTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    t.match(await sender.send(message(url)), { code: 'delivered' });
    for (const [moment, whenever] of Object.entries(MOMENTS)) {
        for (const newConnection of [false, true]) {
            const onItsWay = asked();
            const sent = sender.send({ ...message(url), newConnection });
            await onItsWay;
            whenever(() => standStill(ATTEMPT_TIMEOUT + 300));
            t.match(await sent, { code: 'delivered' }, moment);
        }
    }
});

t.test('a connection that was made meanwhile is there', async (t) => {
    const { url } = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: 30_000, connectTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    const sent = sender.send({ ...message(url), newConnection: true });
    standStill(ATTEMPT_TIMEOUT + 300);
    t.match(await sent, { code: 'delivered' });
});

t.test('nobody is blamed for what a process did not see', async (t) => {
    const { url, asked: onItsWay } = await receiver(t);
    const sender = httpSender({ guard, attemptTimeout: ATTEMPT_TIMEOUT });
    t.teardown(() => sender.close());
    const sent = sender.send(message(`${url}/silent`));
    await onItsWay();
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

const oauthMessage = (url: string, tokenUrl: string, exporterId = 'one') => ({
    ...message(url),
    exporterId,
    authentication: { oauth: { tokenUrl, clientId: 'id', clientSecret: 'secret', ca: ROOT.cert } },
});

t.test('a token that came while the process stood still has come', async (t) => {
    const [{ url }, { url: tokens, asked }] = await Promise.all([receiver(t), tokenServer(t)]);
    const sender = loopbackSender(t, { attemptTimeout: 2 * ATTEMPT_TIMEOUT });
    t.match(await sender.send(oauthMessage(url, tokens)), { code: 'delivered' });
    for (const [moment, whenever] of Object.entries(MOMENTS)) {
        const onItsWay = asked();
        // Both wait for the one token of their exporter.
        const sent = [1, 2].map(() => sender.send(oauthMessage(url, tokens, moment)));
        await onItsWay;
        whenever(() => standStill(ATTEMPT_TIMEOUT + 300));
        t.match(await Promise.all(sent), [{ code: 'delivered' }, { code: 'delivered' }], moment);
    }
});

t.test('nor is a token server', async (t) => {
    const [{ url }, { url: tokens, asked: onItsWay }] = await Promise.all([receiver(t), tokenServer(t)]);
    const sender = loopbackSender(t, { attemptTimeout: 4 * ATTEMPT_TIMEOUT });
    // What asking takes is loaded by now.
    t.match(await sender.send(oauthMessage(url, tokens)), { code: 'delivered' });
    const sent = sender.send(oauthMessage(url, `${tokens}/silent`));
    await onItsWay();
    standStill(2 * ATTEMPT_TIMEOUT + 1_200);
    t.match(await sent, { code: 'interrupted', detail: /^This process stood still for 1\d\d\d ms: No access token: / });
    const seen = { code: 'token_failed', detail: 'No access token: the token server had not answered after 2000 ms' };
    t.match(await sender.send(oauthMessage(url, `${tokens}/silent`)), seen, 'but for what it saw');
});
