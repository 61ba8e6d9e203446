/*
 * A page of a table as PostgreSQL lays it out (`storage/bufpage.h`, `storage/checksum_impl.h`). What was removed of one leaves its bytes in the room
 * between what is there.
 */

/** Bytes of a page. */
export const PAGE = 8192;

/** Pages in each of the files of a table. */
export const PAGES_OF_FILE = 131_072;

const HEADER = 24;
const AT = { checksum: 8, lower: 12, upper: 14, special: 16 };
/** Where a row has the transaction that made it, the one that removed or locked it, and what is known of both. */
const OF_ROW = { xmin: 0, xmax: 4, infomask: 20 };
/** That the transaction that made a row is past for everybody. */
const XMIN_FROZEN = 0x0300;
/** Smaller ids are of no transaction: of what `initdb` made at first, and of what old versions froze. */
const FIRST_XID = 3;

/** Of the pointer to a row: that it leads to one. */
const NORMAL = 1;

interface Row {
    readonly start: number;
    readonly end: number;
}

/**
 * Leaves zeros wherever a page has nothing, in place. A page whose checksum was wrong, torn while it was written, is so afterwards as well: the log
 * mends it.
 *
 * @param number The page's in its table.
 */
export function clearRoom(page: Buffer, number: number): void {
    const [lower, upper, special] = [page.readUInt16LE(AT.lower), page.readUInt16LE(AT.upper), page.readUInt16LE(AT.special)];
    if (lower < HEADER || lower > upper || upper > special || special > PAGE) {
        return;
    }

    const before = Buffer.from(page);
    let at = lower;
    for (const { start, end } of rowsOf(page, lower).sort((one, other) => one.start - other.start)) {
        page.fill(0, at, Math.max(at, start));
        at = Math.max(at, end);
    }
    page.fill(0, at, Math.max(at, special));
    if (!page.equals(before) && checksumOf(before, number) === before.readUInt16LE(AT.checksum)) {
        page.writeUInt16LE(checksumOf(page, number), AT.checksum);
    }
}

/** Whether no row of a page names a transaction, so that all may be forgotten that ever were. Pages of indexes, which end with something of their own, never do. */
export function isFrozen(page: Buffer): boolean {
    if (page.readUInt16LE(AT.special) !== PAGE) {
        return true;
    }

    return rowsOf(page, Math.min(page.readUInt16LE(AT.lower), PAGE)).every(({ start }) => {
        const row = page.subarray(start);
        const frozen = (row.readUInt16LE(OF_ROW.infomask) & XMIN_FROZEN) === XMIN_FROZEN || row.readUInt32LE(OF_ROW.xmin) < FIRST_XID;
        return frozen && row.readUInt32LE(OF_ROW.xmax) === 0;
    });
}

/** What the pointers of a page lead to: 15 bits say where it begins, 2 what it is, and 15 how long it is. */
function rowsOf(page: Buffer, lower: number): Row[] {
    const rows: Row[] = [];
    for (let at = HEADER; at + 4 <= lower; at += 4) {
        const pointer = page.readUInt32LE(at);
        const start = pointer & 0x7fff;
        if (((pointer >>> 15) & 3) === NORMAL) {
            rows.push({ start, end: Math.min(start + (pointer >>> 17), PAGE) });
        }
    }
    return rows;
}

/** Of 32 sums at once, each of every 32nd word. */
const SUMS = 32;
const PRIME = 16_777_619;
const OFFSETS = [
    0x5b1f36e9, 0xb8525960, 0x02ab50aa, 0x1de66d2a, 0x79ff467a, 0x9bb9f8a3, 0x217e7cd2, 0x83e13d2c, 0xf8d4474f, 0xe39eb970, 0x42c6ae16,
    0x993216fa, 0x7b093b5d, 0x98daff3c, 0xf718902a, 0x0b1c9cdb, 0xe58f764b, 0x187636bc, 0x5d7b3bb1, 0xe73de7de, 0x92bec979, 0xcca6c0b2,
    0x304a0979, 0x85aa43d4, 0x783125bb, 0x6ca8eaa2, 0xe407eac6, 0x4b5cfc3e, 0x9fbf8c76, 0x15ca20be, 0xf2ca9fd3, 0x959bd756,
];

function mixed(sum: number, word: number): number {
    const value = sum ^ word;
    return Math.imul(value, PRIME) ^ (value >>> 17);
}

/** PostgreSQL's checksum of a page, as if the page had none. */
export function checksumOf(page: Buffer, number: number): number {
    const words = new Int32Array(page.buffer.slice(page.byteOffset, page.byteOffset + PAGE));
    // Little-endian, as all machines are that WebAssembly runs on here: the lower half of the word is the checksum.
    words[AT.checksum / 4] = (words[AT.checksum / 4] ?? 0) & 0xffff0000;
    const sums = Int32Array.from(OFFSETS);
    for (let at = 0; at < words.length; at += 1) {
        sums[at % SUMS] = mixed(sums[at % SUMS] ?? 0, words[at] ?? 0);
    }
    const result = sums.reduce((all, sum) => all ^ mixed(mixed(sum, 0), 0), 0);
    return (((result ^ number) >>> 0) % 65_535) + 1;
}
