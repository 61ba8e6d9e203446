import { request } from 'node:http';

/** What it took to read an index. */
export interface IndexRead {
    readonly seconds: number;
    readonly firstByteMs: number;
    readonly mebibytes: number;
}

/** Reads an index to its end without keeping it. */
export function readIndex(url: string, token: string): Promise<IndexRead> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
        const get = request(url, { headers: { token } }, (response) => {
            let bytes = 0;
            let firstByteMs = 0;
            response.on('data', (chunk: Buffer) => {
                firstByteMs ||= performance.now() - started;
                bytes += chunk.length;
            });
            response.on('error', reject);
            response.on('end', () => {
                if (response.statusCode !== 200 || !response.complete) {
                    reject(new Error(`${url}: status ${response.statusCode}`));
                    return;
                }

                resolve({ seconds: (performance.now() - started) / 1000, firstByteMs, mebibytes: bytes / 2 ** 20 });
            });
        });
        get.on('error', reject);
        get.end();
    });
}
