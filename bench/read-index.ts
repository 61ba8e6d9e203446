import { request } from 'node:http';

export interface IndexFigures {
    readonly seconds: number;
    readonly firstByteMs: number;
    readonly mebibytes: number;
    readonly [figure: string]: number;
}

/** Reads an index to its end without keeping it. */
export function readIndex(url: string, token: string): Promise<IndexFigures> {
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
