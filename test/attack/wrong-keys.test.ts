import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys } from '../../adapters/memory/index.ts';
import { postgresApiKeys } from '../../adapters/postgres/index.ts';
import { apiKeys } from '../../lib/keys/api-keys.ts';
import { newApiKey } from '../../lib/keys/key-form.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { PER_SECOND } from '../../plugins/token-auth/refusal-pacing.ts';
import { migratedMemory } from '../support/migrated-database.ts';

/*
 * A flood of keys that are well-formed and wrong: each was a query of its own, and a good key stood in line behind all of them.
 */

const FLOOD = 5_000;

function counted(store: ApiKeyStore): { readonly store: ApiKeyStore; readonly asked: { queries: number } } {
    const asked = { queries: 0 };
    const counts =
        <Given extends unknown[], Found>(find: (...given: Given) => Found) =>
        (...given: Given): Found => {
            asked.queries += 1;
            return find(...given);
        };
    const together = store.findByDigests?.bind(store);
    return {
        asked,
        store: {
            ...store,
            findByDigest: counts((digest: string) => store.findByDigest(digest)),
            ...(together !== undefined && { findByDigests: counts(together) }),
        },
    };
}

t.test('a flood of wrong keys shares its queries, and a good key among them is found', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const { store, asked } = counted(postgresApiKeys({ pool }));
    const keys = apiKeys({ store, revealable: false });
    const { key, id } = await keys.create('good');
    const wrong = Array.from({ length: FLOOD }, () => newApiKey());
    const [good, ...others] = await Promise.all([key, ...wrong, key].map((text) => keys.verify(text)));
    t.match(good, { id });
    t.match(others.pop(), { id });
    t.strictSame(new Set(others), new Set([null]));
    t.ok(asked.queries <= 12, `${asked.queries} queries for ${FLOOD + 2} keys`);
});

t.test('a key is good from the moment it is made, and no longer than until it is revoked, whatever was asked before', async (t) => {
    const { store } = counted(memoryApiKeys());
    const random = (size: number): Uint8Array => new Uint8Array(size).fill(7);
    const keys = apiKeys({ store, revealable: false, random });
    const text = newApiKey(random);
    t.equal(await keys.verify(text), null);
    const { id } = await keys.create('made just now');
    t.match(await keys.verify(text), { id });
    await keys.revoke(id);
    t.equal(await keys.verify(text), null);
});

t.test('a flood on the wire is answered so often a second and no more, and a good key does not wait with it', async (t) => {
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    server.route({ path: '/', method: 'GET', options: { auth: 'token' }, handler: () => 'in' });
    await server.start();
    t.teardown(() => server.stop());
    const { key } = await server.plugins['token-auth'].create('good');

    let refused = 0;
    const started = performance.now();
    const flood = Array.from({ length: 40 }, () => {
        const socket = connect(Number(server.info.port), '127.0.0.1');
        const ask = (requests: number): void =>
            void socket.write(`GET / HTTP/1.1\r\nHost: a\r\ntoken: ${newApiKey()}\r\n\r\n`.repeat(requests));
        socket.on('data', (text) => {
            const answers = text.toString('latin1').split('HTTP/1.1 403').length - 1;
            refused += answers;
            ask(answers);
        });
        ask(16);
        return socket;
    });
    const answered: string[] = [];
    for (const seconds = 3; performance.now() - started < seconds * 1000; ) {
        const answer = await fetch(server.info.uri, { headers: { token: key } });
        answered.push(await answer.text());
        await sleep(100);
    }
    t.strictSame(new Set(answered), new Set(['in']), 'all that the good key asked for meanwhile');

    const most = ((performance.now() - started) / 1000) * PER_SECOND + 100;
    t.ok(refused > 0 && refused <= most, `${refused} refused, of ${Math.round(most)}`);
    for (const socket of flood) {
        socket.destroy();
    }
});
