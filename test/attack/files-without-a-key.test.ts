import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { server as hapiServer } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { MAX_STREAMS } from '../../plugins/open-streams.ts';
import { fileHandler } from '../../plugins/rest-api-v2/docs-files.ts';
import { packagedFile } from '../../plugins/web-page.ts';
import { served } from '../plugins/rest-api-v2/served.ts';

/*
 * The page about the API is everybody's, and so are its files, of which one has more than a megabyte: each reader got a copy of his own, compressed
 * for him, so that some hundreds of them who read nothing took all the memory of the server.
 */

const BUNDLE = '/api-docs/swagger-ui-bundle.js';
const plain = readFileSync(packagedFile('swagger-ui-dist', 'swagger-ui-bundle.js', 'this test'));

async function page() {
    const { server } = await served({ store: memoryInventory(), openapi: { page: '/api-docs' } });
    const get = (headers: Record<string, string> = {}, method = 'GET') => server.inject({ method, url: BUNDLE, headers });
    return { server, get };
}

t.test('sends a file as it is, compressed, or not at all to who has it', async (t) => {
    const { get } = await page();
    const [whole, compressed] = [await get(), await get({ 'accept-encoding': 'gzip' })];
    t.ok(whole.rawPayload.equals(plain));
    t.ok(gunzipSync(compressed.rawPayload).equals(plain));
    for (const { statusCode, headers, rawPayload } of [whole, compressed]) {
        t.equal(statusCode, 200);
        t.match(headers, {
            'content-type': 'text/javascript; charset=utf-8',
            'content-length': rawPayload.length,
            'x-content-type-options': 'nosniff',
            'content-security-policy': /script-src 'self'/,
            'cache-control': 'no-cache',
            vary: 'accept-encoding',
        });
    }
    const tags = [whole, compressed].map(({ headers }) => String(headers.etag));
    t.equal(new Set(tags).size, 2, 'each has a tag of its own');
    const again = await get({ 'if-none-match': tags[0] as string });
    t.match(again, { statusCode: 304, payload: '', headers: { etag: tags[0], 'cache-control': 'no-cache', vary: 'accept-encoding' } });
    t.equal((await get({ 'accept-encoding': 'gzip', 'if-none-match': tags[1] as string })).statusCode, 304);
    t.match(await get({ 'if-none-match': '"other"' }), { statusCode: 200 });
    t.match(await get({}, 'HEAD'), { statusCode: 200, payload: '' });
});

const MIB = 1_048_576;

/** Somebody who asks and reads nothing. */
async function reader(t: Test, uri: string): Promise<{ readonly status: number; readonly after: string | undefined; leave(): void }> {
    const asked = http.get(uri, { agent: false });
    t.teardown(() => asked.destroy());
    asked.on('error', () => {});
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    return { status: response.statusCode ?? 0, after: response.headers['retry-after'], leave: () => asked.destroy() };
}

t.test('sends so many at once, of one copy, and gives the place of who has left to another', async (t) => {
    // More than systems take off the hands of a server before anybody reads it.
    const folder = t.testdir({ 'large.js': ' '.repeat(32 * MIB) });
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    server.route({ method: 'GET', path: '/large.js', handler: fileHandler(join(folder, 'large.js')) });
    await server.start();
    t.teardown(() => server.stop({ timeout: 0 }));
    const uri = `${server.info.uri}/large.js`;
    const { headers } = await server.inject({ method: 'HEAD', url: '/large.js' });
    const before = process.memoryUsage().arrayBuffers;
    const held: Awaited<ReturnType<typeof reader>>[] = [];
    for (let readers = 0; readers < MAX_STREAMS; readers += 1) {
        held.push(await reader(t, uri));
    }
    t.ok(held.every(({ status }) => status === 200));
    const grown = process.memoryUsage().arrayBuffers - before;
    t.ok(grown < 32 * MIB, `${grown} bytes for ${MAX_STREAMS} readers`);

    t.match(await reader(t, uri), { status: 503, after: '5' });
    const known = await server.inject({ url: '/large.js', headers: { 'if-none-match': String(headers.etag) } });
    t.equal(known.statusCode, 304, 'who has it needs no place');

    held[0]?.leave();
    await until(async () => (await reader(t, uri)).status === 200);
});
