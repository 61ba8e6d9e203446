import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';

/** What a bare hapi server costs, and what it costs with `token-auth` and `rest-api-v2`: time to the first answer, memory, modules. */
const [variant = 'bare'] = process.argv.slice(2);
const started = performance.now();
const { server: hapiServer } = await import('@hapi/hapi');
const server = hapiServer({ host: '127.0.0.1', port: 0 });
server.route({ method: 'GET', path: '/', handler: () => 'ok' });

if (variant === 'plugins') {
    const [{ plugin: tokenAuth }, { plugin: restApi }, { memoryApiKeys, memoryInventory }, { keyRing }, { alwaysLicensed }] =
        await Promise.all([
            import('../plugins/token-auth/index.ts'),
            import('../plugins/rest-api-v2/index.ts'),
            import('../adapters/memory/index.ts'),
            import('../lib/keys/index.ts'),
            import('../lib/license/index.ts'),
        ]);
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    await server.register({ plugin: restApi, options: { store: memoryInventory(), license: alwaysLicensed() } });
}

await server.start();
await server.inject('/');
const startMs = performance.now() - started;
const commonJs = Object.keys(createRequire(import.meta.url).cache).length;
const heavy = Object.keys(createRequire(import.meta.url).cache).filter((path) =>
    /node_modules\/(bullmq|ioredis|pg|@electric-sql|undici)\//.test(path),
).length;
globalThis.gc?.();
process.stdout.write(`${JSON.stringify({ startMs, rssMiB: process.memoryUsage().rss / 2 ** 20, modules: commonJs, heavy })}\n`);
process.exit(0);
