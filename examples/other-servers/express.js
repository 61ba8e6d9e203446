import { once } from 'node:events';
import { createServer } from 'node:http';
import express from 'express';
import { addFinding, TABLE } from './findings.js';
import { runAlone } from './run-alone.js';
import { startScanwire } from './scanwire.js';

export async function startServer({ pool, port = 3000, ...options }) {
    await pool.query(TABLE);
    const scanwire = await startScanwire({ pool, ...options });
    const app = express();

    // Before any parser of bodies. Express has cut the path off `url`.
    app.use('/scan', (request, response) => {
        request.url = request.originalUrl;
        scanwire.handle(request, response);
    });

    app.use(express.json());
    app.post('/findings', async (request, response) => {
        response.status(201).json(await addFinding(pool, scanwire.publish, request.body.title));
    });

    const server = createServer(app).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return {
        scanwire,
        url: `http://127.0.0.1:${server.address().port}`,

        async stop() {
            await new Promise((resolve) => server.close(resolve));
            await scanwire.stop();
        },
    };
}

await runAlone(import.meta.url, startServer);
