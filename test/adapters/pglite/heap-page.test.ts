import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checksumOf, clearRoom, PAGE } from '../../../adapters/pglite/heap-page.ts';
import { findTemplate, unpackTemplate } from '../../../adapters/pglite/template.ts';

const folder = join(t.testdir(), 'database');
await unpackTemplate(findTemplate() ?? '', folder);

const LOWER = 12;
const UPPER = 14;
const CHECKSUM = 8;

t.test('knows the checksum of every page that PostgreSQL has written', (t) => {
    const pages = pagesOf();
    t.ok(pages.length > 500, `${pages.length} pages`);
    t.same(
        pages.filter(({ page, number }) => checksumOf(page, number) !== page.readUInt16LE(CHECKSUM)),
        [],
    );
    t.end();
});

t.test('leaves zeros where a page has nothing, and what it has as it was', (t) => {
    const { page, number } = pageWithRoom();
    const { clean, dirty } = writtenInRoom(page, number);
    clearRoom(dirty, number);
    t.ok(dirty.equals(clean));
    clearRoom(dirty, number);
    t.ok(dirty.equals(clean), 'again as well');
    t.end();
});

t.test('clears the few bytes behind a row', (t) => {
    const { page, number } = pageWithRoom();
    const pointer = page.readUInt32LE(24);
    const [start, length] = [pointer & 0x7fff, pointer >>> 17];
    page.writeUInt32LE(start | (1 << 15) | ((length - 8) << 17), 24);
    clearRoom(page, number);
    t.ok(page.subarray(start + length - 8, start + length).every((byte) => byte === 0));
    t.notOk(page.subarray(start, start + length - 8).every((byte) => byte === 0));
    t.end();
});

t.test('leaves a page that is torn one whose checksum is wrong, and one that is none as it is', (t) => {
    const { page, number } = pageWithRoom();
    const { dirty } = writtenInRoom(page, number);
    dirty.writeUInt16LE((dirty.readUInt16LE(CHECKSUM) % 65_535) + 1, CHECKSUM);
    clearRoom(dirty, number);
    t.notOk(dirty.includes('a secret'));
    t.not(checksumOf(dirty, number), dirty.readUInt16LE(CHECKSUM));

    for (const none of [Buffer.alloc(PAGE), Buffer.alloc(PAGE, 'no page at all')]) {
        const before = Buffer.from(none);
        clearRoom(none, 0);
        t.ok(none.equals(before));
    }
    t.end();
});

/** Of the tables that every database has, and their indexes. */
function pagesOf(): readonly { readonly page: Buffer; readonly number: number }[] {
    const files = join(folder, 'base/5');
    return readdirSync(files)
        .filter((name) => /^\d+$/.test(name))
        .flatMap((name) => {
            const bytes = readFileSync(join(files, name));
            return Array.from({ length: bytes.length / PAGE }, (_, number) => ({
                page: bytes.subarray(number * PAGE, (number + 1) * PAGE),
                number,
            }));
        })
        .filter(({ page }) => page.readUInt16LE(UPPER) !== 0);
}

/** A page with rows, and room between these and the pointers to them. */
function pageWithRoom() {
    const found = pagesOf().find(({ page }) => {
        const [lower, upper] = [page.readUInt16LE(LOWER), page.readUInt16LE(UPPER)];
        return lower > 40 && upper - lower > 100 && page.readUInt16LE(16) === PAGE && ((page.readUInt32LE(24) >>> 15) & 3) === 1;
    });
    if (found === undefined) {
        throw new Error('No page has rows and room');
    }
    return found;
}

/** The page with nothing in its room, and with something that was removed of it. */
function writtenInRoom(page: Buffer, number: number): { readonly clean: Buffer; readonly dirty: Buffer } {
    const clean = Buffer.from(page);
    clearRoom(clean, number);
    const dirty = Buffer.from(clean);
    dirty.write('a secret', clean.readUInt16LE(LOWER) + 20);
    dirty.writeUInt16LE(checksumOf(dirty, number), CHECKSUM);
    return { clean, dirty };
}
