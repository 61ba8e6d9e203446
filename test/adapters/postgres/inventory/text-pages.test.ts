import t from 'tap';
import { readersOf } from '../../../../adapters/postgres/inventory/readers.ts';
import { idsWithin, textPages } from '../../../../adapters/postgres/inventory/text-pages.ts';
import type { Executor } from '../../../../lib/transaction.ts';

type Row = { readonly id: number };
type Change = (ids: number[], values: readonly unknown[]) => number[];

const idsUpTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

/** The statements of a listing, answered from ids; `change` may take some away before one is answered. */
function listing(
    ids: readonly number[],
    { change = (seen) => seen, hasText = () => true }: { change?: Change; hasText?: (id: number) => boolean } = {},
) {
    const statements: (readonly unknown[])[] = [];
    let underWay = 0;
    let most = 0;
    const answer = (text: string, [from, until]: readonly (number | readonly number[])[]): readonly object[] => {
        const limit = Number(/ limit (\d+)/.exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
        const page = (after: number, end: number) =>
            change([...ids], [after, end])
                .filter((id) => id > after && id <= end)
                .slice(0, limit);
        if (text.includes('row_number')) {
            return page(Number(from), Number.POSITIVE_INFINITY)
                .filter((_, index) => (index + 1) % 100 === 0)
                .map((id) => ({ id }));
        }
        return [from].flat().map((after = 0, index) => {
            const rows = page(after, [until].flat()[index] ?? Number.POSITIVE_INFINITY);
            const texts = rows.filter(hasText);
            return { text: texts.join(',') || null, last: rows.at(-1) ?? null, rows: rows.length, texts: texts.length };
        });
    };
    const database: Executor = {
        async query<R>(text: string, values: unknown[] = []) {
            statements.push(values);
            underWay += 1;
            most = Math.max(most, underWay);
            await new Promise((resolve) => setImmediate(resolve));
            underWay -= 1;
            const rows = answer(text, values as (number | number[])[]) as R[];
            return { rows, rowCount: rows.length };
        },
    };
    const source = { parents: 0, page: (after: string, until?: string) => `select id, text from rows where ${idsWithin(after, until)}` };
    async function* select(
        _path: readonly number[],
        { after, limit }: { readonly after?: Row; readonly limit?: number },
    ): AsyncGenerator<Row[]> {
        yield ids
            .filter((id) => id > (after?.id ?? 0))
            .slice(0, limit)
            .map((id) => ({ id }));
    }
    const pages = textPages<Row>(readersOf(database), source, select as Parameters<typeof textPages<Row>>[2]);
    const written = async (): Promise<number[]> => {
        const all: number[] = [];
        for await (const batch of pages([])) {
            all.push(...(typeof batch === 'string' ? batch.split(',').map(Number) : batch.map(({ id }) => id)));
        }
        return all;
    };
    return { written, statements, most: () => most };
}

t.test('reads two batches of a long listing at once, and writes them in their order', async (t) => {
    const ids = idsUpTo(40_123);
    const { written, statements, most } = listing(ids);
    t.strictSame(await written(), ids);
    t.equal(most(), 2);
    const parts = (from: number, count = 10): readonly number[] => Array.from({ length: count }, (_, index) => from + 100 * index);
    t.strictSame(statements.slice(0, 5), [[0], [250], [1_250], [parts(1_250), parts(1_350)], [parts(2_250), parts(2_350)]]);
    const rest = [parts(39_250, 8), parts(39_350, 8)];
    t.strictSame(statements.slice(-3), [rest, [40_050], [40_050]], 'what is left, as far as its parts are whole, then the rest');
});

t.test('looks up no bounds for a listing of two batches', async (t) => {
    const { written, statements } = listing(idsUpTo(1_200));
    t.strictSame(await written(), idsUpTo(1_200));
    t.strictSame(statements, [[0], [250]]);
});

t.test('reads on behind rows that have no text, from where their reading ended', async (t) => {
    const ids = idsUpTo(9_000);
    const { written } = listing(ids, { hasText: (id) => id !== 3_000 && id !== 8_999 });
    t.strictSame(await written(), ids);
});

t.test('reads on behind a batch whose rows were removed meanwhile, and takes rows that have come into one', async (t) => {
    const removed: Change = (seen, [from, until]) => (Number(from) >= 2_250 && Number(until) <= 3_250 ? [] : seen);
    const { written } = listing(idsUpTo(9_000), { change: removed });
    t.strictSame(
        await written(),
        idsUpTo(9_000).filter((id) => id <= 2_250 || id > 3_250),
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
