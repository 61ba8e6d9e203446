import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { addFinding, TABLE } from './findings.js';
import { runAlone } from './run-alone.js';
import { startScanwire } from './scanwire.js';

export async function startServer({ pool, port = 3000, ...options }) {
    await pool.query(TABLE);
    const scanwire = await startScanwire({ pool, ...options });

    async function answer(request, response) {
        if (request.method !== 'POST' || request.url !== '/findings') {
            response.writeHead(404).end();
            return;
        }

        const { title } = await json(request);
        const finding = await addFinding(pool, scanwire.publish, title);
        response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(finding));
    }

    const server = createServer((request, response) => {
        if (request.url.startsWith('/scan/')) {
            scanwire.handle(request, response);
        } else {
            answer(request, response).catch((error) => {
                console.error(error.message);
                response.writeHead(500).end();
            });
        }
    }).listen(port, '127.0.0.1');
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
