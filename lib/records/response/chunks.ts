/**
 * How far a walk through the chunked transfer coding (RFC 9112, 7.1) has come. A plain object, since a file of records has millions
 * of chunked bodies.
 */
export interface ChunkWalk {
    /**
     * What comes next: the size of a chunk, the end of a chunk's data, a line of the trailer; or `end` behind the trailer, `broken`
     * behind a line that is not what it should be.
     */
    state: 'size' | 'data' | 'trailer' | 'end' | 'broken';
    /** Where the next line begins; in the state `end` it is what comes after the body. */
    at: number;
    /** Up to here there is no line feed behind `at`. */
    searched: number;
    /** Where the data of the last chunk begins. */
    dataStart: number;
}

const SIZE = /^[ \t]*([0-9a-f]{1,16})[ \t]*(?:[;\r]|$)/i;
/** What belongs to the size is at the start of its line; extensions may be of any length. */
const SIZE_LENGTH = 64;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/** A walk that begins at the first chunk's size. */
export function chunkWalk(start: number): ChunkWalk {
    return { state: 'size', at: start, searched: start, dataStart: start };
}

/**
 * Goes on to the next chunk, from `dataStart` to `at`; that may be beyond the bytes that are there. False when there is none, or not
 * yet: then it may be called again with more bytes. Each byte is looked at once, however they are cut. Lines may end with LF alone.
 *
 * @param bytes All bytes so far.
 * @param isAll Whether no more will come: a size may end where the bytes end.
 */
export function nextChunk(walk: ChunkWalk, bytes: Buffer, isAll: boolean): boolean {
    while (walk.state !== 'end' && walk.state !== 'broken') {
        const lineEnd = lineEndOf(walk, bytes, isAll);
        if (lineEnd === -1) {
            return false;
        }

        const isEmpty = lineEnd === walk.at || (lineEnd === walk.at + 1 && bytes[walk.at] === CARRIAGE_RETURN);
        if (walk.state === 'data') {
            goTo(walk, lineEnd + 1, isEmpty ? 'size' : 'broken');
        } else if (walk.state === 'trailer') {
            goTo(walk, lineEnd + 1, isEmpty ? 'end' : 'trailer');
        } else if (takeSize(walk, bytes, lineEnd)) {
            return true;
        }
    }

    return false;
}

/** -1 for a line that is not whole yet. */
function lineEndOf(walk: ChunkWalk, bytes: Buffer, isAll: boolean): number {
    const lineFeed = bytes.indexOf(LINE_FEED, walk.searched);
    if (lineFeed !== -1) {
        return lineFeed;
    }

    walk.searched = Math.max(walk.searched, bytes.length);
    return isAll && walk.state === 'size' && walk.at < bytes.length ? bytes.length : -1;
}

/** Whether a chunk follows. */
function takeSize(walk: ChunkWalk, bytes: Buffer, lineEnd: number): boolean {
    const digits = SIZE.exec(bytes.toString('latin1', walk.at, Math.min(lineEnd, walk.at + SIZE_LENGTH)))?.[1];
    if (digits === undefined) {
        walk.state = 'broken';
        return false;
    }

    const size = Number.parseInt(digits, 16);
    walk.dataStart = lineEnd + 1;
    goTo(walk, lineEnd + 1 + size, size === 0 ? 'trailer' : 'data');
    return size > 0;
}

function goTo(walk: ChunkWalk, at: number, state: ChunkWalk['state']): void {
    walk.at = at;
    walk.searched = at;
    walk.state = state;
}
