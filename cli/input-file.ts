import { createReadStream, fstatSync, open, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { sha256Of } from '../lib/content-digest.ts';
import { ScanwireError } from '../lib/errors.ts';
import type { Rereadable } from '../lib/gunzip.ts';
import { fileError } from './output/errors.ts';
import { readAll } from './read-all.ts';

/** Longest JSON document that is read as a whole. */
const MAX_JSON = 4 * 1024 * 1024;

/** In bytes: a read takes its time however little it reads. */
const CHUNK = 524_288;

/** What it is called in messages. */
const STDIN = 'stdin';

/** A file that is read, or stdin. */
export interface Input {
    readonly source: AsyncIterable<Uint8Array> | Rereadable;
    /** In bytes, null where it is not known beforehand. */
    readonly size: number | null;
    /** SHA-256 of all bytes, in base64, for which a file is read once more; undefined of what can be read but once. */
    sha256(): Promise<string | undefined>;
    /** Ends it, also while nothing comes. */
    close(): void;
}

/**
 * Opens a file, `-` for stdin.
 *
 * @throws ScanwireError `INVALID_INPUT` when it cannot be read.
 */
export async function openInput(file: string): Promise<Input> {
    if (file === '-') {
        // Node would take a folder for an empty stdin.
        assertNoFolder(STDIN, fstatSync(0));
        return inputOf(STDIN, null, () => process.stdin);
    }

    try {
        const found = await stat(file);
        assertNoFolder(file, found);
        const size = found.isFile() ? found.size : null;
        return inputOf(file, size, () => (found.isFIFO() ? pipe(file) : createReadStream(file, { highWaterMark: CHUNK })));
    } catch (error) {
        throw unreadable(file, error);
    }
}

function assertNoFolder(name: string, found: Stats): void {
    if (found.isDirectory()) {
        throw fileError('read', name, { code: 'EISDIR' });
    }
}

/** @throws ScanwireError `INVALID_INPUT` for a file that cannot be read, is too long or is not JSON. */
export async function readJson(file: string): Promise<unknown> {
    const text = await readText(file);
    try {
        return JSON.parse(text);
    } catch {
        throw new ScanwireError('INVALID_INPUT', `${file === '-' ? STDIN : file} is not valid JSON`, { field: 'file' });
    }
}

/** @throws ScanwireError `INVALID_INPUT` for a file that cannot be read or is too long. */
export async function readText(file: string): Promise<string> {
    const bytes = await readAll((await openInput(file)).source, MAX_JSON);
    if (bytes === null) {
        throw new ScanwireError('INVALID_INPUT', `${file} is longer than 4 MiB`, { field: 'file' });
    }

    return bytes.toString();
}

/** Opens the stream when its first bytes are asked for. */
function inputOf(name: string, size: number | null, open: () => Readable | Promise<Readable>): Input {
    let stream: Readable | undefined;

    async function* source(): AsyncGenerator<Uint8Array, void, undefined> {
        try {
            stream = await open();
            yield* stream as AsyncIterable<Uint8Array>;
        } catch (error) {
            throw unreadable(name, error);
        }
    }

    return {
        source: size === null ? source() : Object.assign(source(), { again: source }),
        size,
        sha256: async () => (size === null ? undefined : await sha256Of(source())),
        close: () => void stream?.destroy(),
    };
}

/** A file stream would hold a thread in each read, and the process could not end before the other side writes. */
async function pipe(file: string): Promise<Readable> {
    return new Socket({ fd: await promisify(open)(file, 'r'), readable: true, writable: false });
}

function unreadable(file: string, cause: unknown): ScanwireError {
    return cause instanceof ScanwireError ? cause : fileError('read', file, cause);
}
