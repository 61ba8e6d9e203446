import fastify from 'fastify';
import { addFinding, TABLE } from './findings.js';
import { runAlone } from './run-alone.js';
import { startScanwire } from './scanwire.js';

export async function startServer({ pool, port = 3000, ...options }) {
    await pool.query(TABLE);
    const scanwire = await startScanwire({ pool, ...options });
    const app = fastify();

    // A scope of its own, whose bodies nobody reads.
    app.register(async (scope) => {
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', (_request, _body, done) => done(null));
        scope.all('/scan/*', (request, reply) => {
            reply.hijack();
            scanwire.handle(request.raw, reply.raw);
        });
    });

    app.post('/findings', async (request, reply) => {
        reply.code(201);
        return await addFinding(pool, scanwire.publish, request.body.title);
    });

    // After the last request.
    app.addHook('onClose', () => scanwire.stop());
    const url = await app.listen({ host: '127.0.0.1', port });
    return { scanwire, url, stop: () => app.close() };
}

await runAlone(import.meta.url, startServer);
