import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type HttpResponse, readDecodedRecords, readRecords, recordJsonSchema } from 'scanwire/records';
import { memoryMiB } from '../processes.ts';

const NEWLINE = 0x0a;

/** Reads a file of records in one way, so many times one after the other, and prints what it cost. */
const [way = '', file = '', times = '1'] = process.argv.slice(2);

async function* source(): AsyncGenerator<Uint8Array> {
    for (let time = 0; time < Number(times); time += 1) {
        yield* createReadStream(file) as AsyncIterable<Uint8Array>;
    }
}

/** As the command line reads a file. */
function rereadable(): AsyncIterable<Uint8Array> {
    return Object.assign(source(), { again: source });
}

/** Of what is decoded, so that nothing of it can be left out. */
let seen = 0;

/** Each gives the number of good records. */
const ways: Readonly<Record<string, () => Promise<number>>> = {
    async check() {
        let good = 0;
        for await (const lines of readRecords(rereadable()).batches()) {
            for (const line of lines) {
                good += line.ok ? 1 : 0;
            }
        }

        return good;
    },

    async decode() {
        let good = 0;
        for await (const lines of readDecodedRecords(rereadable()).batches()) {
            for (const line of lines) {
                seen += line.ok && line.record.response.http ? sizes(line.record.response) : 0;
                good += line.ok ? 1 : 0;
            }
        }

        return good;
    },

    parse: () => gunzippedLines(() => true),

    ajv: () => gunzippedLines(new Ajv2020({ strict: true }).compile(recordJsonSchema)),
};

/** Peers: Node's gunzip as it comes, each line cut out and given to `JSON.parse`, then to a validator. */
async function gunzippedLines(validate: (value: unknown) => boolean): Promise<number> {
    let rest: Buffer = Buffer.alloc(0);
    let good = 0;
    for await (const chunk of createReadStream(file).pipe(createGunzip()) as AsyncIterable<Buffer>) {
        let start = 0;
        for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
            const line = start === 0 ? Buffer.concat([rest, chunk.subarray(0, end)]).toString() : chunk.toString('utf8', start, end);
            good += validate(JSON.parse(line)) ? 1 : 0;
            start = end + 1;
        }

        rest = start === 0 ? Buffer.concat([rest, chunk]) : chunk.subarray(start);
    }

    return good;
}

function sizes({ status, headers, body, charset, title, truncated }: HttpResponse): number {
    return status + headers.length + body.length + (charset ?? '').length + (title ?? '').length + Number(truncated);
}

globalThis.gc?.();
const idle = process.memoryUsage().rss;
const cpuBefore = process.cpuUsage();
const records = await (ways[way] as () => Promise<number>)();
const { user, system } = process.cpuUsage(cpuBefore);
const cpuSeconds = (user + system) / 1_000_000;
const peakMiB = (await memoryMiB(process.pid, 'VmHWM')) - idle / 1_048_576;
process.stdout.write(`${JSON.stringify({ cpuSeconds, peakMiB, records, seen })}\n`);
