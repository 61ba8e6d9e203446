import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants, gunzipSync, gzip, type ZlibOptions } from 'node:zlib';
import { ScanwireError } from '../../lib/errors.ts';
import { lineSplitter } from '../../lib/line-splitter.ts';
import { printableJson } from '../../lib/printable.ts';
import type { HttpsRecord } from '../../lib/records/index.ts';
import { readRecord } from '../../lib/records/parse-line.ts';
import { MAX_LINE_BYTES, stringifyRecord } from '../../lib/records/record.ts';
import { unwritable } from '../output/write-output.ts';

/** Where records go, one by one: what is written is out of this process when `write` is done. */
export interface RecordOutput {
    write(record: HttpsRecord): Promise<void>;
    close(): Promise<void>;
}

interface RecordFileOptions {
    /** Goes on with the file of a run before, and gets its records. */
    readonly onKept?: ((record: HttpsRecord) => void) | undefined;
    /** Packs each record by itself. */
    readonly packed: boolean;
}

const pack = promisify(gzip);

interface RecordStreamOptions extends Pick<RecordFileOptions, 'packed'> {
    /** Writes signs that a terminal acts on as JSON escapes them: the records say the same. */
    readonly printable: boolean;
}

/** Records on stdout, each packed by itself if wanted. */
export function recordStream({ packed, printable }: RecordStreamOptions): RecordOutput {
    return {
        async write(record) {
            if (!process.stdout.write(printable ? printableJson(lineOf(record)) : await bytesOf(record, packed))) {
                await once(process.stdout, 'drain');
            }
        },
        async close() {},
    };
}

/**
 * Records at the end of a file.
 *
 * @throws ScanwireError `INVALID_INPUT` when the file cannot be written, when it holds something and there is no `onKept`, or when
 * what it holds is not what this command writes.
 */
export async function recordFile(path: string, { onKept, packed }: RecordFileOptions): Promise<RecordOutput> {
    const refuse = (cause: unknown): never => {
        throw unwritable(path, cause);
    };
    const file = await open(path, 'a+').catch(refuse);
    try {
        if ((await file.stat()).size > 0) {
            if (onKept === undefined) {
                throw new ScanwireError('INVALID_INPUT', `${path} holds something: go on with it by --resume, or name another file`, {
                    field: 'output',
                });
            }

            await (packed ? keptMembers : keptLines)(file, onKept);
        }
    } catch (error) {
        await file.close();
        throw error;
    }

    return {
        async write(record) {
            await file.appendFile(await bytesOf(record, packed)).catch(refuse);
        },
        close: () => file.close(),
    };
}

function lineOf(record: HttpsRecord): string {
    return `${stringifyRecord(record)}\n`;
}

async function bytesOf(record: HttpsRecord, packed: boolean): Promise<Buffer> {
    const line = Buffer.from(lineOf(record));
    return packed ? pack(line) : line;
}

const LF = Buffer.from('\n');

/**
 * Reads what a run before has left in a file of lines, and leaves the file so that the next line can go to its end: a last line that
 * was cut is removed, and one that only lacks its end gets it.
 *
 * @throws ScanwireError `INVALID_INPUT` for a file that holds something else; it is left as it was.
 */
async function keptLines(file: FileHandle, onRecord: (record: HttpsRecord) => void): Promise<void> {
    const splitter = lineSplitter(MAX_LINE_BYTES);
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
        for (const line of splitter.push(chunk as Buffer)) {
            onRecord(keptRecord(line.bytes) ?? notOurs(`line ${line.number}`));
        }
    }

    for (const last of splitter.end()) {
        const record = keptRecord(last.bytes);
        if (record !== null) {
            onRecord(record);
            await file.appendFile(LF);
        } else if (last.bytes !== null && beginsWith(BEGINNING, last.bytes)) {
            await file.truncate(last.byteOffset);
        } else {
            notOurs(`line ${last.number}`);
        }
    }
}

/** How zlib begins a member, without a name, a comment or other fields. */
const MEMBER = Buffer.from([0x1f, 0x8b, 8, 0]);
const CHUNK = 2 * MAX_LINE_BYTES;

/**
 * {@link keptLines} for a gzip file that holds each record in a member of its own: so what was cut is one record, and the rest need
 * not be written again. The members are told apart here, since the gunzip of Node does not say where one ends.
 */
async function keptMembers(file: FileHandle, onRecord: (record: HttpsRecord) => void): Promise<void> {
    let held = Buffer.alloc(0);
    let start = 0;
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK })) {
        held = Buffer.concat([held, chunk as Buffer]);
        for (let member = firstMember(held); member !== null; member = firstMember(held)) {
            onRecord(keptRecord(member.content) ?? notOurs(`what begins at byte ${start}`));
            start += member.length;
            held = held.subarray(member.length);
        }

        if (held.length > CHUNK) {
            notOurs(`what begins at byte ${start}`);
        }
    }

    const cut = gunzipped(held, { finishFlush: constants.Z_SYNC_FLUSH });
    if (!beginsWith(MEMBER, held) || cut === null || !beginsWith(BEGINNING, cut)) {
        notOurs(`what begins at byte ${start}`);
    }

    await file.truncate(start);
}

/**
 * What the first member holds, and its own length. It can end where another one begins, also one that was cut, or with the bytes;
 * null when it ends at none of these.
 */
function firstMember(bytes: Buffer): { readonly content: Buffer; readonly length: number } | null {
    for (let length = 1; length <= bytes.length; length += 1) {
        const next = bytes.indexOf(MEMBER[0] as number, length);
        length = next === -1 ? bytes.length : next;
        const content = beginsWith(MEMBER, bytes.subarray(length)) ? gunzipped(bytes.subarray(0, length)) : null;
        // Zeros behind the end would be passed over; a member ends with the length of what it holds.
        if (content !== null && content.length === bytes.readUInt32LE(length - 4)) {
            return { content, length };
        }
    }

    return null;
}

/** Null when the bytes cannot be unpacked to their end. */
function gunzipped(bytes: Buffer, options: ZlibOptions = {}): Buffer | null {
    try {
        return gunzipSync(bytes, { maxOutputLength: MAX_LINE_BYTES + 1, ...options });
    } catch {
        return null;
    }
}

/** As this command begins each line. */
const BEGINNING = Buffer.from('{"data":"');

/** The record that a line holds; null for anything else, also for a line that was too long to be kept. */
function keptRecord(line: Uint8Array | null): HttpsRecord | null {
    const read = line === null ? null : readRecord(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString());
    return read?.ok ? read.record : null;
}

/** Whether bytes can be what is left of something that was cut: nothing else may be thrown away. */
function beginsWith(beginning: Buffer, bytes: Uint8Array): boolean {
    return beginning.subarray(0, bytes.length).equals(bytes.subarray(0, beginning.length));
}

function notOurs(where: string): never {
    throw new ScanwireError('INVALID_INPUT', `Cannot go on with the output file: ${where} is not a record as this command writes it`, {
        field: 'output',
    });
}
