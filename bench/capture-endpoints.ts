import { performance } from 'node:perf_hooks';
import tls from 'node:tls';
import { egressGuard } from '../lib/egress/guard.ts';
import { CAPTURE_TLS } from '../lib/records/capture/tls.ts';
import { captureRecords } from '../lib/records/index.ts';

/**
 * Asks 2,000 endpoints, 100 at a time: by `captureRecords`, or by a bare loop over `tls.connect` with the same TLS options that
 * sends the same request and throws the answer away. Prints the rate.
 */
const [variant = 'bare', port = ''] = process.argv.slice(2);
const COUNT = 2000;
const AT_ONCE = 100;
const addresses = Array.from({ length: COUNT }, (_, index) => `127.1.${index >> 8}.${index & 255}`);

/** Answers that came to their end. */
async function captured(): Promise<number> {
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const targets = addresses.map((address) => `https://${address}:${port}/`);
    let whole = 0;
    for await (const { ok } of captureRecords(targets, { guard, concurrency: AT_ONCE })) {
        whole += ok ? 1 : 0;
    }

    return whole;
}

async function bare(): Promise<number> {
    const secureContext = tls.createSecureContext(CAPTURE_TLS);
    const left = addresses.values();
    let whole = 0;
    const ask = (host: string): Promise<void> =>
        new Promise((resolve, reject) => {
            const socket = tls.connect({ host, port: Number(port), secureContext, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
            socket.write(`GET / HTTP/1.1\r\nHost: ${host}:${port}\r\nUser-Agent: bench\r\nAccept: */*\r\nConnection: close\r\n\r\n`);
            socket.on('error', reject);
            socket.on('end', () => {
                whole += 1;
                resolve();
            });
            socket.resume();
        });
    const loop = async (): Promise<void> => {
        for (const host of left) {
            await ask(host);
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, loop));
    return whole;
}

const startedAt = performance.now();
const whole = await (variant === 'bare' ? bare() : captured());
const seconds = (performance.now() - startedAt) / 1000;
if (whole !== COUNT) {
    throw new Error(`${whole} of ${COUNT} answers`);
}

process.stdout.write(`${JSON.stringify({ perSecond: COUNT / seconds, peakMiB: process.resourceUsage().maxRSS / 1024 })}\n`);
