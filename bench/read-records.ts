import { createReadStream, readFileSync } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { check } from '../cli/records/files.ts';
import { lineSplitter } from '../lib/line-splitter.ts';
import { type HttpResponse, readDecodedRecords, recordJsonSchema } from '../lib/records/index.ts';
import { unpacked } from '../lib/unpacked.ts';

const NEWLINE = 0x0a;

/** Reads a file of records in one way, so many times one after the other, and prints what it cost. */
const [way = '', file = '', times = '1'] = process.argv.slice(2);

async function* source(): AsyncGenerator<Uint8Array> {
    for (let time = 0; time < Number(times); time += 1) {
        yield* createReadStream(file) as AsyncIterable<Uint8Array>;
    }
}

/** Of what is decoded, so that nothing of it can be left out. */
let seen = 0;

/** Each gives the number of good records. */
const ways: Readonly<Record<string, () => Promise<number>>> = {
    check: async () => (await check(source())).good,

    async decode() {
        let good = 0;
        for await (const lines of readDecodedRecords(source()).batches()) {
            for (const line of lines) {
                seen += line.ok && line.record.response.http ? sizes(line.record.response) : 0;
                good += line.ok ? 1 : 0;
            }
        }

        return good;
    },

    gunzip: gunzippedLines,

    parse: () => parsedLines(() => true),

    ajv() {
        const validate = new Ajv2020({ strict: true }).compile(recordJsonSchema);
        return parsedLines(validate);
    },
};

/** A peer of Node alone: its gunzip as it comes, each line cut out and given to `JSON.parse`. */
async function gunzippedLines(): Promise<number> {
    let rest: Buffer = Buffer.alloc(0);
    let good = 0;
    for await (const chunk of createReadStream(file).pipe(createGunzip()) as AsyncIterable<Buffer>) {
        let start = 0;
        for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
            const line = start === 0 ? Buffer.concat([rest, chunk.subarray(0, end)]).toString() : chunk.toString('utf8', start, end);
            good += JSON.parse(line) === null ? 0 : 1;
            start = end + 1;
        }

        rest = start === 0 ? Buffer.concat([rest, chunk]) : chunk.subarray(start);
    }

    return good;
}

/** Peers that are lent scanwire's unpacking and cutting into lines: then `JSON.parse` and no more, or a validator. */
async function parsedLines(validate: (value: unknown) => boolean): Promise<number> {
    const splitter = lineSplitter(1_048_576);
    let good = 0;
    for await (const chunk of unpacked(source())) {
        for (const { bytes } of splitter.push(chunk)) {
            good += validate(JSON.parse(text(bytes as Uint8Array))) ? 1 : 0;
        }
    }

    return good;
}

function text(bytes: Uint8Array): string {
    return (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).toString();
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
// `maxRSS` of `resourceUsage` begins with that of the parent.
const peakMiB = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
process.stdout.write(`${JSON.stringify({ cpuSeconds, peakMiB: peakMiB - idle / 1_048_576, records, seen })}\n`);
