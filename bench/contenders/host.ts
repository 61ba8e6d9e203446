import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';

/** What a bare hapi server costs, the same with joi, and with `token-auth` and `rest-api-v2`: time to the first answer, memory, modules. */
const [variant = 'bare'] = process.argv.slice(2);
const started = performance.now();
const cpuBefore = process.cpuUsage();
const { server: hapiServer } = await import('@hapi/hapi');
const server = hapiServer({ host: '127.0.0.1', port: 0 });
server.route({ method: 'GET', path: '/', handler: () => 'ok' });

if (variant === 'joi') {
    await import('joi');
}

if (variant === 'plugins') {
    const [{ plugin: tokenAuth }, { plugin: restApi }, { memoryApiKeys, memoryInventory }, { keyRing }, { alwaysLicensed }] =
        await Promise.all([
            import('scanwire/token-auth'),
            import('scanwire/rest-api-v2'),
            import('scanwire/memory'),
            import('scanwire/keys'),
            import('scanwire/license'),
        ]);
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    await server.register({ plugin: restApi, options: { store: memoryInventory(), license: alwaysLicensed() } });
}

await server.start();
await server.inject('/');
const startMs = performance.now() - started;
const { user, system } = process.cpuUsage(cpuBefore);
const loaded = Object.keys(createRequire(import.meta.url).cache);
const heavy = loaded.filter((path) => /node_modules\/(bullmq|ioredis|pg|@electric-sql|undici)\//.test(path));
globalThis.gc?.();
const rssMiB = process.memoryUsage().rss / 2 ** 20;
const figures = { startMs, cpuMs: (user + system) / 1000, rssMiB, modules: loaded.length, heavy: heavy.length };
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
