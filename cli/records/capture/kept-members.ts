import type { FileHandle } from 'node:fs/promises';
import { constants, inflateRawSync } from 'node:zlib';
import { errorCode } from '../../../lib/error-code.ts';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { MAX_LINE_BYTES } from '../../../lib/records/max-line-bytes.ts';
import { beginsRecord, keptRecord, notOurs } from './kept-record.ts';

/** Without a name, a comment or other fields, as zlib writes it. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0]);
const HEADER_BYTES = 10;
/** Checksum and length. */
const TRAILER_BYTES = 8;
const CHUNK = 2 * MAX_LINE_BYTES;

/**
 * {@link keptLines} for a gzip file that holds each record in a member of its own: so what was cut is one record, and the rest need
 * not be written anew.
 */
export async function keptMembers(file: FileHandle, onRecord: (record: HttpsRecord) => void): Promise<void> {
    let held = Buffer.alloc(0);
    let start = 0;
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK })) {
        held = Buffer.concat([held, chunk as Buffer]);
        for (let member = firstMember(held, start); member !== null; member = firstMember(held, start)) {
            onRecord(keptRecord(member.content) ?? notOurs(`what begins at byte ${start}`));
            start += member.length;
            held = held.subarray(member.length);
        }

        if (held.length > CHUNK) {
            notOurs(`what begins at byte ${start}`);
        }
    }

    if (held.length > 0 && !beginsRecord(inflated(held, constants.Z_SYNC_FLUSH).content)) {
        notOurs(`what begins at byte ${start}`);
    }

    await file.truncate(start);
}

interface Member {
    readonly content: Uint8Array;
    /** Of the packed form. */
    readonly length: number;
}

/** Null while it is not whole. */
function firstMember(bytes: Buffer, start: number): Member | null {
    if (!HEADER.subarray(0, bytes.length).equals(bytes.subarray(0, HEADER.length))) {
        notOurs(`what begins at byte ${start}`);
    }

    try {
        const { content, packedLength } = inflated(bytes);
        const length = HEADER_BYTES + packedLength + TRAILER_BYTES;
        return bytes.length < length ? null : { content, length };
    } catch (error) {
        return errorCode(error) === 'Z_BUF_ERROR' ? null : notOurs(`what begins at byte ${start}`);
    }
}

interface Inflated {
    readonly content: Buffer;
    readonly packedLength: number;
}

/** @param finishFlush `Z_SYNC_FLUSH` gives what there is of a member that was cut. */
function inflated(member: Buffer, finishFlush: number = constants.Z_FINISH): Inflated {
    const packed = member.subarray(HEADER_BYTES);
    // its types do not know what `info` does
    const result: unknown = inflateRawSync(packed, { info: true, maxOutputLength: MAX_LINE_BYTES + 1, finishFlush });
    const { buffer, engine } = result as { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };
    return { content: buffer, packedLength: engine.bytesWritten };
}
