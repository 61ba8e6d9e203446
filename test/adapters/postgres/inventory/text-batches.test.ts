import t from 'tap';
import { readersOf } from '../../../../adapters/postgres/inventory/readers.ts';
import { idsWithin, textBatches } from '../../../../adapters/postgres/inventory/text-batches.ts';
import type { Executor } from '../../../../lib/transaction.ts';

type Row = { readonly id: number };
type Change = (ids: number[], values: readonly unknown[]) => number[];

const idsUpTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

interface Listing {
    /** May take some ids away before a statement is answered. */
    readonly change?: Change;
    readonly hasText?: (id: number) => boolean;
    readonly isKept?: true;
    /** How long its text is; as long as the id by default. */
    readonly length?: (id: number) => number;
}

/** The statements of a listing, answered from ids. */
function listing(ids: readonly number[], { change = (seen) => seen, hasText = () => true, isKept, length = () => 0 }: Listing = {}) {
    const statements: (readonly number[])[] = [];
    let underWay = 0;
    let most = 0;
    const text = (rows: readonly number[]): string => rows.map((id) => String(id).padStart(length(id), '0')).join();
    const reader = (answer: (rows: readonly number[], statement: string) => readonly object[]): Executor => ({
        async query<R>(text: string, values: readonly unknown[] = []) {
            const [from, until = Number.POSITIVE_INFINITY] = values.length > 0 ? (values as number[]) : namedIn(text);
            statements.push(until === Number.POSITIVE_INFINITY ? [from] : [from, until]);
            underWay += 1;
            most = Math.max(most, underWay);
            await new Promise((resolve) => setImmediate(resolve));
            underWay -= 1;
            const limit = until === Number.POSITIVE_INFINITY ? Number(/ limit (\d+)/.exec(text)?.[1]) : until - from;
            const read = change([...ids], [from, until]).filter((id) => id > from && id <= until);
            const rows = answer(read.slice(0, limit), text) as R[];
            return { rows, rowCount: rows.length };
        },
    });
    const database = reader((rows, statement) => {
        if (statement.includes('array_agg')) {
            return rows.filter((_, index) => (index + 1) % 1000 === 0).map((id) => ({ id }));
        }
        return rows.map((id) => ({ id, text: hasText(id) ? text([id]) : null }));
    });
    const texts = reader((rows) => {
        const halves = [rows.slice(0, rows.length / 2), rows.slice(rows.length / 2)].filter(({ length }) => length > 0);
        const batch = { texts: rows.every(hasText) ? halves.map((half) => Buffer.from(text(half))) : null };
        return [{ ...batch, last: rows.at(-1) ?? null, rows: rows.length }];
    });
    const page = (after: string, until?: string) => `select id, text from rows where ${idsWithin(after, until)}`;
    async function* select(
        _path: readonly number[],
        { after, limit }: { readonly after?: Row; readonly limit?: number },
    ): AsyncGenerator<Row[]> {
        yield ids
            .filter((id) => id > (after?.id ?? 0))
            .slice(0, limit)
            .map((id) => ({ id }));
    }
    const source = { parents: 0, page, ...(isKept && { isKept }) };
    const readers = readersOf(database, texts);
    const pages = textBatches<Row>(readers, source, select as Parameters<typeof textBatches<Row>>[2]);
    const written = async (): Promise<number[]> => {
        const all: number[] = [];
        for await (const batch of pages([])) {
            const isText = typeof batch === 'string' || batch instanceof Uint8Array;
            all.push(...(isText ? Buffer.from(batch).toString().split(',').map(Number) : batch.map(({ id }) => id)));
        }
        return all;
    };
    return { written, statements, most: () => most, noteAsker: readers.noteAsker };
}

/** What is copied out takes no parameters. */
function namedIn(statement: string): readonly [number, number | undefined] {
    const ranges = [/generate_series\((\d+)::bigint, (\d+) - 1, \d+\)/, /rows\.id > (\d+) and rows\.id <= (\d+)/, /rows\.id > (\d+)/];
    const [, from, until] = ranges.map((range) => range.exec(statement)).find((found) => found !== null) ?? [];
    return [Number(from), until === undefined ? undefined : Number(until)];
}

t.test('reads two batches of a long listing whose text is made at once, and writes them in their order', async (t) => {
    const ids = idsUpTo(40_123);
    const { written, statements, most } = listing(ids);
    t.strictSame(await written(), ids);
    t.equal(most(), 2);
    t.strictSame(statements.slice(0, 5), [[0], [250], [1_250], [1_250, 2_250], [2_250, 3_250]]);
    const rest = [
        [36_250, 37_250],
        [37_250, 38_250],
        [38_250, 39_250],
    ];
    t.strictSame(statements.slice(-5), [...rest, [39_250], [39_250]], 'what is left, as far as its batches are whole, then the rest');
});

t.test('reads the same of rows whose ids lie far apart', async (t) => {
    const ids = idsUpTo(9_000).map((id) => id * 9);
    const { written, statements } = listing(ids);
    t.strictSame(await written(), ids);
    t.strictSame(statements.slice(3, 5), [
        [11_250, 20_250],
        [20_250, 29_250],
    ]);
});

t.test('reads a long listing whose text is kept batch by batch, the next while one is written', async (t) => {
    const ids = idsUpTo(6_000);
    const { written, statements, most } = listing(ids, { isKept: true });
    t.strictSame(await written(), ids);
    t.equal(most(), 1);
    t.strictSame(statements, [[0], [250], [1_250], [2_250], [3_250], [4_250], [5_250]]);
});

t.test('reads smaller batches of each while several are read, the second one included', async (t) => {
    const { written, statements } = listing(idsUpTo(3_000), { isKept: true });
    const all = await Promise.all(Array.from({ length: 6 }, written));
    for (const ids of all) {
        t.strictSame(ids, idsUpTo(3_000));
    }
    const begun = new Set(statements.map(([from]) => from));
    t.strictSame(
        [250, 750, 1_250].map((from) => begun.has(from)),
        [true, true, true],
        `${[...begun]}`,
    );
});

t.test('reads half as much at once of a long listing beside somebody who asks for a row', async (t) => {
    const ids = idsUpTo(3_000);
    const { written, statements, noteAsker } = listing(ids, { isKept: true });
    noteAsker();
    t.strictSame(await written(), ids);
    t.strictSame(statements, [[0], [250], [1_250], [1_750], [2_250], [2_750]]);
});

t.test('looks up no bounds for a listing of two batches', async (t) => {
    const { written, statements } = listing(idsUpTo(1_200));
    t.strictSame(await written(), idsUpTo(1_200));
    t.strictSame(statements, [[0], [250]]);
});

for (const kept of [{}, { isKept: true }] as const) {
    const of = 'isKept' in kept ? 'kept' : 'made';
    t.test(`reads on behind rows that have no text, from where their reading ended, where it is ${of}`, async (t) => {
        const ids = idsUpTo(9_000);
        const { written } = listing(ids, { ...kept, hasText: (id) => id !== 3_000 && id !== 8_999 });
        t.strictSame(await written(), ids);
    });
}

t.test('reads on behind a batch whose rows were removed meanwhile, and takes rows that have come into one', async (t) => {
    const removed: Change = (seen, [from, until]) => (Number(from) >= 2_250 && Number(until) <= 4_250 ? [] : seen);
    const { written } = listing(idsUpTo(9_000), { change: removed });
    t.strictSame(
        await written(),
        idsUpTo(9_000).filter((id) => id <= 2_250 || id > 4_250),
    );
    const odd = idsUpTo(9_000).filter((id) => id % 2 === 1);
    const filled = listing(odd, { change: (seen, [, until]) => (until === Infinity ? seen : idsUpTo(9_000)) });
    const all = await filled.written();
    t.equal(new Set(all).size, all.length, 'none is there twice');
    t.strictSame(
        odd.filter((id) => !new Set(all).has(id)),
        [],
    );
});

for (const kept of [{}, { isKept: true }] as const) {
    t.test(
        `reads fewer rows at once behind a batch of many bytes, and as many as before behind small ones: ${JSON.stringify(kept)}`,
        async (t) => {
            const ids = idsUpTo(30_000);
            const isLong = (id: number): boolean => id > 1_000 && id <= 8_000;
            const { written, statements } = listing(ids, { ...kept, length: (id) => (isLong(id) ? 20_000 : 0) });
            t.strictSame(await written(), ids);
            const begun = statements.map(([from]) => Number(from));
            const sizes = begun.slice(1).map((from, index) => [begun[index], from - Number(begun[index])]);
            const between = sizes.filter(([from]) => Number(from) >= 3_250 && Number(from) < 8_000);
            t.ok(
                between.every(([, size]) => Number(size) <= (8 * 2 ** 20) / 20_000),
                JSON.stringify(sizes),
            );
            t.ok(sizes.filter(([from, size]) => Number(from) > 9_000 && Number(size) === 1_000).length >= 16, JSON.stringify(sizes));
        },
    );
}
