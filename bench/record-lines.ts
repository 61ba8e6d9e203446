import { readFileSync } from 'node:fs';
import { type HttpsRecord, parseResponse, stringifyRecord } from 'scanwire/records';
import { seeded } from '../test/support/seeded.ts';

const SEED = 20_261_121;
const WORDS = 4_000;
const LETTERS = 'eeeeaaatttiiioonnsshrrddlcumwfgypbvk';
/** Text between tags, where a page differs from the next. */
const TEXT = />[^<]{3,}</g;
const WORD = /[a-z]{3,12}/g;

/**
 * Lines as a scan would give them, made from real captures until there are so many bytes: each has an endpoint, a certificate and,
 * where its body is a plain page, words of its own. Everything keeps its length, so heads stay true. Always the same lines.
 */
export function* recordLines(bytes: number): Generator<Buffer> {
    const random = seeded(SEED);
    const below = (end: number): number => Math.floor(random() * end);
    const words = wordsByLength(random);
    const samples = samplesOf();
    for (let made = 0; made < bytes; ) {
        const { record, head, body, isText } = samples[below(samples.length)] as Sample;
        const text = isText ? body.replace(TEXT, (text) => text.replace(WORD, (word) => words[word.length]?.[below(WORDS)] ?? word)) : body;
        const host = `${words[8]?.[below(WORDS)]}.${words[6]?.[below(WORDS)]}.example`;
        const line = Buffer.from(
            `${stringifyRecord({
                ...record,
                data: Buffer.from(head + text, 'latin1').toString('base64'),
                host,
                ip: `${1 + below(223)}.${below(256)}.${below(256)}.${below(256)}`,
                ...(record.vhost && { vhost: host }),
                ...(record.subject && { subject: { ...record.subject, CN: host } }),
            })}\n`,
        );
        made += line.length;
        yield line;
    }
}

interface Sample {
    readonly record: HttpsRecord;
    readonly head: string;
    /** A character for each byte. */
    readonly body: string;
    readonly isText: boolean;
}

function samplesOf(): Sample[] {
    const lines = readFileSync('fixtures/records/servers.jsonl', 'utf8').trimEnd().split('\n');
    return lines.map((line) => {
        const record = JSON.parse(line) as HttpsRecord;
        const bytes = Buffer.from(record.data, 'base64');
        const response = parseResponse(bytes);
        const headBytes = response.http ? bytes.length - response.rawBody.length : bytes.length;
        return {
            record,
            head: bytes.toString('latin1', 0, headBytes),
            body: bytes.toString('latin1', headBytes),
            isText: response.http && response.title !== null && response.headers.every(({ name }) => name !== 'content-encoding'),
        };
    });
}

/** Words that nobody knows, the frequent ones of a page among them. */
function wordsByLength(random: () => number): string[][] {
    const letter = (): string => LETTERS[Math.floor(random() * LETTERS.length)] as string;
    return Array.from({ length: 13 }, (_, length) => Array.from({ length: WORDS }, () => Array.from({ length }, letter).join('')));
}
