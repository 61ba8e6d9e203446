import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { recordLine } from '../../../lib/records/record-line.ts';
import { ScanwireError } from '../../../lib/scanwire-error.ts';
import { unwritable } from '../unwritable.ts';
import { keptLines } from './kept-lines.ts';
import { keptMembers } from './kept-members.ts';

/** Where records go, one by one: what is written is out of this process when `write` is done. */
export interface RecordOutput {
    write(record: HttpsRecord): Promise<void>;
    close(): Promise<void>;
}

export interface RecordFileOptions {
    /** Goes on with the file of a run before, whose records are told to it. */
    readonly onKept?: ((record: HttpsRecord) => void) | undefined;
    /** Packs each record by itself. */
    readonly packed: boolean;
}

const pack = promisify(gzip);

/** Records on stdout. */
export function recordStream({ packed }: Pick<RecordFileOptions, 'packed'>): RecordOutput {
    return {
        async write(record) {
            if (!process.stdout.write(await bytesOf(record, packed))) {
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
    const file = await open(path, 'a+').catch((error: unknown) => refuse(path, error));
    try {
        await prepare(file, path, { onKept, packed });
    } catch (error) {
        await file.close();
        throw error;
    }

    return {
        async write(record) {
            await file.appendFile(await bytesOf(record, packed)).catch((error: unknown) => refuse(path, error));
        },
        close: () => file.close(),
    };
}

async function prepare(file: FileHandle, path: string, { onKept, packed }: RecordFileOptions): Promise<void> {
    if ((await file.stat()).size === 0) {
        return;
    }

    if (onKept === undefined) {
        throw new ScanwireError('INVALID_INPUT', `${path} holds something: go on with it by --resume, or name another file`, {
            field: 'output',
        });
    }

    await (packed ? keptMembers : keptLines)(file, onKept);
}

async function bytesOf(record: HttpsRecord, packed: boolean): Promise<Buffer> {
    const line = Buffer.from(`${recordLine(record)}\n`);
    return packed ? pack(line) : line;
}

function refuse(path: string, cause: unknown): never {
    throw unwritable(path, cause);
}
