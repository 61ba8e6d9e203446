import tls from 'node:tls';
import { captureRecords, egressGuard } from 'scanwire/records';
import { memoryMiB } from '../processes.ts';

/**
 * Asks so many endpoints, 100 at a time: by `captureRecords`, or by a bare loop over `tls.connect` with its TLS options that sends
 * the same request and throws the answer away.
 */
const [variant = 'bare', port = '', countText = '0'] = process.argv.slice(2);
const count = Number(countText);
const PARALLEL = 100;
const addresses = Array.from({ length: count }, (_, index) => `127.1.${index >> 8}.${index & 255}`);

/** Answers that came to their end. */
async function captured(): Promise<number> {
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const targets = addresses.map((address) => `https://${address}:${port}/`);
    let whole = 0;
    for await (const { ok } of captureRecords(targets, { guard, concurrency: PARALLEL })) {
        whole += ok ? 1 : 0;
    }

    return whole;
}

async function bare(): Promise<number> {
    const secureContext = tls.createSecureContext({ minVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0', ca: [] });
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
    await Promise.all(Array.from({ length: PARALLEL }, loop));
    return whole;
}

const started = performance.now();
const cpuBefore = process.cpuUsage();
const whole = await (variant === 'bare' ? bare() : captured());
const seconds = (performance.now() - started) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);
if (whole !== count) {
    throw new Error(`${whole} of ${count} answers`);
}

const peakMiB = await memoryMiB(process.pid, 'VmHWM');
process.stdout.write(`${JSON.stringify({ perSecond: count / seconds, cpu: (user + system) / count, peakMiB })}\n`);
