import { once } from 'node:events';
import { request } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { cpuTimes } from '../../bench/cpu-time.ts';
import { HOSTILE, plainRecords } from '../../bench/hostile-bodies.ts';
import { json, serve } from '../acceptance/support/processes.ts';
import { usedDataOf } from '../support/served.ts';

/*
 * What a batch costs must follow from its bytes on the wire: at most 50 times as much as so many bytes of plain records, for whoever has
 * a key. Two kilobytes of gzip once took 17 s of CPU, and half a megabyte 50 s, which went on when the client had left.
 */

const MIB = 1_048_576;
const FACTOR = 50;

interface Target {
    readonly origin: string;
    readonly key: string;
    /** CPU time of the server so far, in milliseconds. */
    spent(): Promise<number>;
}

async function target(t: Test): Promise<Target> {
    const data = await usedDataOf(t);
    const { origin, pid } = await serve(t, data);
    const { key } = await json<{ key: string }>(['keys', 'create', 'sender', '--scope', 'records:write', '--data', data]);
    return { origin, key, spent: async () => ((await cpuTimes({ server: pid })).server ?? 0) / 1000 };
}

function sending({ origin, key }: Target, path: string, body: Buffer) {
    const sent = request(`${origin}/https-record-schema${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-ndjson', token: key },
        rejectUnauthorized: false,
        agent: false,
    });
    sent.on('error', () => {});
    sent.end(body);
    return sent;
}

/** What one batch costs, in milliseconds: CPU time of the server until it has answered. */
async function cost(target: Target, path: string, body: Buffer): Promise<number> {
    const before = await target.spent();
    const [answer] = await once(sending(target, path, body), 'response');
    await answer.resume().toArray();
    return (await target.spent()) - before;
}

/** The same, of up to three: what else goes on in the machine only ever adds to it. */
async function leastCost(target: Target, path: string, body: Buffer, allowed: number): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && least > allowed; tries += 1) {
        least = Math.min(least, await cost(target, path, body));
    }
    return least;
}

t.test('a batch costs at most 50 times what its bytes would cost as plain records', { timeout: 110_000 }, async (t) => {
    const server = await target(t);
    const plain = plainRecords(8 * MIB);
    await cost(server, '/check', plain);
    const perByte = (await cost(server, '/check', plain)) / plain.length;
    const request = Math.max(...(await several(5, () => cost(server, '/check', Buffer.alloc(1)))), 10);
    for (const [name, body] of Object.entries(HOSTILE)) {
        for (const path of ['/check', '/check?results=all', '/records?results=all']) {
            const allowed = FACTOR * Math.max(perByte * body.length, request);
            const spent = await leastCost(server, path, body, allowed);
            t.ok(spent <= allowed, `${name}, ${path}: ${spent} of ${Math.round(allowed)} ms`);
        }
    }
});

t.test('work stops when the client has left', { timeout: 60_000 }, async (t) => {
    const server = await target(t);
    for (const path of ['/check', '/records?results=all']) {
        // Seconds of work, of which the whole request has been received when the first answers come or soon after.
        const sent = sending(server, path, gzipSync(plainRecords(12 * MIB), { level: 1 }));
        await busy(server);
        sent.destroy();
        const left = await server.spent();
        await idle(server);
        const after = (await server.spent()) - left;
        t.ok(after <= 100, `${path}: ${after} ms of CPU after the client had left`);
    }
});

async function several<T>(count: number, make: () => Promise<T>): Promise<readonly T[]> {
    const made: T[] = [];
    while (made.length < count) {
        made.push(await make());
    }

    return made;
}

/** Resolves when the server has worked for 50 ms. */
async function busy(server: Target): Promise<void> {
    for (const before = await server.spent(); (await server.spent()) - before < 50; ) {
        await setTimeout(5);
    }
}

/** Resolves when the server has not worked for 200 ms. */
async function idle(server: Target): Promise<void> {
    for (let [before, now] = [-1, await server.spent()]; now - before > 10; ) {
        before = now;
        await setTimeout(200);
        now = await server.spent();
    }
}
