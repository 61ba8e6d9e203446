import t from 'tap';
import { collection } from '../../../../adapters/postgres/inventory/collection.ts';
import { type Pace, readersOf } from '../../../../adapters/postgres/inventory/readers.ts';
import type { Reader } from '../../../../adapters/postgres/left-statements.ts';
import type { Executor } from '../../../../lib/transaction.ts';

interface Asked {
    readonly values: readonly unknown[];
    answer(rows: readonly object[]): void;
    fail(error: Error): void;
}

/** A database that answers when the test says so. */
function heldDatabase(): { readonly database: Executor; readonly asked: Asked[] } {
    const asked: Asked[] = [];
    const database: Executor = {
        query: <Row>(_: string, values: unknown[] = []) =>
            new Promise<{ rows: Row[]; rowCount: number | null }>((resolve, reject) => {
                asked.push({ values, answer: (rows) => resolve({ rows: rows as Row[], rowCount: rows.length }), fail: reject });
            }),
    };
    return { database, asked };
}

interface HeldPace extends Pace {
    time: number;
    readonly rests: { readonly passed: number; readonly task: () => void }[];
}

/** Time that the test moves, and rests that it ends. */
function heldPace(): HeldPace {
    const pace: HeldPace = { time: 0, rests: [], now: () => pace.time, after: (passed, task) => void pace.rests.push({ passed, task }) };
    return pace;
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

t.test('reads two further batches at once, one while several wait, in the order in which they were asked for', async (t) => {
    const { database, asked } = heldDatabase();
    const { further, searching } = readersOf(database, database);
    const reads = ['a', 'b', 'c', 'd'].map((name, index) => (index % 2 === 0 ? further : searching.further).query('select', [name]));
    await settled();
    t.same(
        asked.map(({ values }) => values),
        [['a'], ['b']],
    );

    asked[1]?.answer([]);
    await reads[1];
    await settled();
    t.equal(asked.length, 2, 'while two wait, one is enough');

    asked[0]?.fail(new Error('lost'));
    await t.rejects(reads[0] as Promise<unknown>, { message: 'lost' });
    await settled();
    t.same(asked.map(({ values }) => values).slice(2), [['c'], ['d']], 'the next ones begin when it has ended, also when it has failed');

    asked[2]?.answer([]);
    asked[3]?.answer([]);
    await Promise.all([reads[2], reads[3]]);
    const later = further.query('select', ['e']);
    await settled();
    t.same(asked.at(-1)?.values, ['e'], 'a turn that nobody waits for is free again');
    asked.at(-1)?.answer([]);
    await later;
});

t.test('rests behind a long batch for three times as long as it took, where others wait, and for no longer than 50 ms', async (t) => {
    const { database, asked } = heldDatabase();
    const pace = heldPace();
    const { further, texts, areSeveral } = readersOf(database, database, database, { pace });
    const names = () => asked.map(({ values: [name] }) => name);
    const read = (name: string) => texts.query('select', [name]);
    const reads = ['a', 'b', 'c', 'd', 'e'].map(read);
    t.strictSame([await settled(), names(), areSeveral()], [undefined, ['a', 'b'], true]);

    pace.time += 8;
    asked[0]?.answer([]);
    await reads[0];
    t.strictSame([pace.rests.map(({ passed }) => passed), names()], [[24], ['a', 'b']]);
    pace.time += 92;
    asked[1]?.answer([]);
    await reads[1];
    t.equal(pace.rests.length, 1, 'there is one rest at a time');
    pace.rests[0]?.task();
    await settled();
    t.strictSame(names(), ['a', 'b', 'c'], 'then the next one begins');

    const more = [further.query('select', ['f']), read('g')];
    pace.time += 400;
    asked[2]?.answer([]);
    await reads[2];
    t.equal(pace.rests[1]?.passed, 50, 'a slow database is not waited for three times as long again');
    pace.rests[1]?.task();
    for (let next = 3; next < 7; next += 1) {
        await settled();
        asked[next]?.answer([]);
        await settled();
        pace.rests[next - 1]?.task();
    }
    await Promise.all([...reads, ...more]);
    t.strictSame(names(), ['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'in their order');
    t.equal(areSeveral(), false);
    const after = read('h');
    await settled();
    asked[7]?.answer([]);
    await after;
    t.equal(pace.rests.length, 4, 'nor does it rest where nobody waits, or behind a short one');
});

t.test('rests behind a second batch of a long listing too, and behind none of a short one or of one that cannot be read', async (t) => {
    const { database, asked } = heldDatabase();
    const pace = heldPace();
    const { seconds } = readersOf(database, database, database, { pace });
    const reads = Array.from({ length: 6 }, (_, number) => seconds.query('select', [number]));
    const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));
    await settled();
    asked[0]?.answer(rows(499));
    asked[1]?.fail(new Error('lost'));
    await t.rejects(reads[1] as Promise<unknown>, { message: 'lost' });
    await settled();
    t.strictSame([pace.rests.length, asked.length], [0, 3], 'the next one begins');

    pace.time += 6;
    asked[2]?.answer(rows(500));
    await reads[2];
    await settled();
    t.strictSame([pace.rests.map(({ passed }) => passed), asked.length], [[18], 3]);
    pace.rests[0]?.task();
    for (let next = 3; next < 6; next += 1) {
        await settled();
        asked[next]?.answer([]);
    }
    await Promise.all(reads.filter((_, number) => number !== 1));
});

t.test('reads one listing as one of several for a second after somebody has asked for a row or a page', async (t) => {
    const { database, asked } = heldDatabase();
    const pace = heldPace();
    const readers = readersOf(database, database, database, { pace });
    const rows = collection<{ readonly id: number }>(readers, { select: 'id', table: 'rows', from: 'rows', parents: [], filters: [] });
    const asks = [() => rows.get([], 1), () => rows.select([], { limit: 100 })[Symbol.asyncIterator]().next()] as const;
    for (const ask of asks) {
        t.equal(readers.isShared(), false);
        const answered = ask();
        await settled();
        asked.pop()?.answer([]);
        await answered;
        t.strictSame([readers.isShared(), readers.areSeveral()], [true, false]);
        const batches = [readers.texts.query('select', ['a']), readers.texts.query('select', ['b'])];
        await settled();
        t.strictSame(
            asked.map(({ values }) => values),
            [['a']],
        );
        pace.time += 9;
        asked.pop()?.answer([]);
        await batches[0];
        await settled();
        t.strictSame([pace.rests.map(({ passed }) => passed), asked.length], [[27], 0]);
        pace.time += 990;
        t.equal(readers.isShared(), true);
        pace.time += 1;
        pace.rests.pop()?.task();
        await settled();
        asked.pop()?.answer([]);
        await batches[1];
        t.equal(pace.rests.length, 0, 'who asked has not come again');
    }

    const listing = rows.list([], {})[Symbol.asyncIterator]().next();
    await settled();
    asked.pop()?.answer([{ id: 1 }]);
    await listing;
    t.equal(readers.isShared(), false, 'a listing that begins is nobody else');
});

t.test('begins four listings at once, of those that begin together', async (t) => {
    const { database, asked } = heldDatabase();
    const { firsts } = readersOf(database, database);
    const reads = Array.from({ length: 6 }, (_, number) => firsts.query('select', [number]));
    await settled();
    t.equal(asked.length, 4);
    asked[0]?.answer([]);
    await reads[0];
    await settled();
    t.equal(asked.length, 5);
    for (let next = 1; next < 6; next += 1) {
        asked[next]?.answer([]);
        await settled();
    }
    await Promise.all(reads);
});

t.test('begins long ones one after the other, with rests between them, where somebody asks for a row', async (t) => {
    const { database, asked } = heldDatabase();
    const pace = heldPace();
    const { firsts, noteAsker } = readersOf(database, database, database, { pace });
    const batch = (rows: number) => Array.from({ length: rows }, (_, id) => ({ id }));
    const begin = (count: number) => Array.from({ length: count }, (_, number) => firsts.query('select', [number]));
    noteAsker();
    const reads = begin(9);
    await settled();
    asked[0]?.answer(batch(249));
    await reads[0];
    await settled();
    t.strictSame([pace.rests.length, asked.length], [0, 5], 'short ones are four at once all the same');

    pace.time += 4;
    asked[1]?.answer(batch(250));
    await reads[1];
    await settled();
    t.strictSame([pace.rests.map(({ passed }) => passed), asked.length], [[12], 5]);
    for (const { answer } of asked.slice(2)) {
        answer(batch(250));
    }
    await settled();
    t.equal(asked.length, 5, 'the rest goes on');
    pace.rests[0]?.task();
    await settled();
    t.equal(asked.length, 6, 'and then there is one');
    asked[5]?.answer(batch(250));
    await reads[5];

    pace.time += 1_000;
    pace.rests[1]?.task();
    await settled();
    t.equal(asked.length, 9, 'nobody asks any more');
    for (const { answer } of asked.slice(6)) {
        answer(batch(250));
    }
    await Promise.all(reads);
    t.equal(pace.rests.length, 2);
});

t.test('leaves the turn of a listing that nobody reads any more to the next, and hands its signal on', async (t) => {
    const { database, asked } = heldDatabase();
    const signals: unknown[] = [];
    const noting: Reader = {
        query(text, values, signal) {
            signals.push(signal);
            return database.query(text, values);
        },
    };
    const { further } = readersOf(noting, noting);
    const [early, late] = [new AbortController(), new AbortController()];
    const read = (name: string, signal?: AbortSignal) => further.query('select', [name], signal);
    const reads = [read('a', late.signal), read('b'), read('c', early.signal), read('d')];
    early.abort(new Error('left'));
    await t.rejects(reads[2] as Promise<unknown>, { message: 'left' });
    await t.rejects(read('e', early.signal), { message: 'left' });
    asked[0]?.answer([]);
    asked[1]?.answer([]);
    await settled();
    asked[2]?.answer([]);
    await Promise.all([reads[0], reads[1], reads[3]]);
    t.same(
        asked.map(({ values }) => values),
        [['a'], ['b'], ['d']],
    );
    t.strictSame(signals, [late.signal, undefined, undefined]);
    const next = read('f', late.signal);
    await settled();
    asked[3]?.answer([]);
    t.equal((await next).rowCount, 0, 'every turn was given back');
});

t.test('lets a row, a page and the first batch of a listing wait for no listing', async (t) => {
    const { database, asked } = heldDatabase();
    const rows = collection<{ readonly id: number }>(readersOf(database, database), {
        select: 'id',
        table: 'rows',
        from: 'rows',
        parents: [],
        filters: [],
    });
    const batch = Array.from({ length: 250 }, (_, index) => ({ id: index + 1 }));
    const listings = Array.from({ length: 3 }, () => rows.list([], {})[Symbol.asyncIterator]());
    const firsts = listings.map((listing) => listing.next());
    await settled();
    t.equal(asked.length, 3, 'first batches');

    for (const { answer } of asked) {
        answer(batch);
    }
    await Promise.all(firsts);
    const seconds = listings.map((listing) => listing.next());
    await settled();
    t.equal(asked.length, 5, 'two further batches');

    void rows.get([], 1).catch(() => {});
    void rows
        .select([], { after: { id: 250 }, limit: 100 })
        [Symbol.asyncIterator]()
        .next();
    await settled();
    t.equal(asked.length, 7, 'a row and a page');

    for (const { answer } of asked.slice(3)) {
        answer([]);
    }
    await settled();
    asked.at(-1)?.answer([]);
    await Promise.all(seconds);
});

t.test('looks the order of changes up once for many batches where no index has it', async (t) => {
    const ids = Array.from({ length: 40 }, (_, index) => index + 1);
    const statements: string[] = [];
    const at = (id: number) => ({ id, updated_at: new Date(id) });
    const database: Executor = {
        async query<Row>(text: string, values: unknown[] = []) {
            statements.push(text);
            const batches = ids.map((place) => ({ ids: `{${place}}`, until: new Date(place).toISOString(), last: `${place}`, rows: 1 }));
            const named = values.map(String).find((value) => value.startsWith('{'));
            const rows = text.includes('row_number') ? batches : [at(Number(named?.slice(1, -1)))];
            return { rows: rows as Row[], rowCount: rows.length };
        },
    };
    const rows = collection<ReturnType<typeof at>>(readersOf(database, database), {
        select: 'id',
        table: 'rows',
        from: 'rows',
        parents: [],
        filters: ['updated_since'],
    });
    const read: number[] = [];
    for await (const batch of rows.select([], { where: { updated_since: new Date(0) } })) {
        read.push(...batch.map(({ id }) => id));
    }
    t.strictSame(read, ids);
    t.equal(statements.filter((text) => text.includes('row_number')).length, 1);
    t.equal(statements.length, 41);
});

t.test('takes a page by changes for a search where no index has their order', async (t) => {
    const asked: string[] = [];
    const reader = (name: string): Executor => ({
        async query() {
            asked.push(name);
            return { rows: [], rowCount: 0 };
        },
    });
    const readers = readersOf(reader('followed'), reader('texts'), reader('searched'));
    const source = { select: 'id', table: 'rows', from: 'rows', parents: [], filters: ['updated_since'] } as const;
    const page = { where: { updated_since: new Date(0) }, limit: 100 };
    for (const one of [source, { ...source, staged: 'staged join rows on rows.id = staged.id' }]) {
        for await (const _ of collection(readers, one).select([], page)) {
            t.fail('there is no row');
        }
    }
    t.strictSame(asked, ['searched', 'followed']);
});
