import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

/** An HTTPS server on every loopback address at one port, which it prints: each address is an endpoint of its own. */
const made = await generate([{ name: 'commonName', value: 'endpoint.example.test' }], { keyType: 'ec', algorithm: 'sha256' });
const page = `<!doctype html><title>Endpoint</title>${'<p>An ordinary page of some kilobytes.</p>'.repeat(100)}`;

const server = createServer({ key: made.private, cert: made.cert }, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': page.length }).end(page);
});

server.listen(0, '0.0.0.0', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
