import pg from 'pg';
import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { type ClientLike, IMPATIENT, patiently } from '../../../../adapters/postgres/database.ts';
import type { PoolLike } from '../../../../adapters/postgres/index.ts';
import { copying } from '../../../../adapters/postgres/inventory/copy-out.ts';
import type { TextBatch } from '../../../../adapters/postgres/inventory/text-batches.ts';
import { databases } from '../databases.ts';

/** Of 3,000 rows, those without one of some number, each text with all that a form of copying could take for its own. */
const texts = (where = 'true', text = `format('{"id":%s,"text":"köln \\t\\n\\\\.,\\x02 %s"}', n, repeat('x', n % 900))`): string =>
    `select n as id, ${text} as text from generate_series(1, 3000) n where ${where} order by n`;

const reading = (pool: PoolLike) => {
    const reader = patiently(pool, IMPATIENT, { through: copying });
    return async (select: string): Promise<TextBatch> => present((await reader.query<TextBatch>(select)).rows[0]);
};

/** The same pool behind clients of a shape of their own, with nothing but what a store asks for. */
function plain(pool: PoolLike): PoolLike {
    return {
        query: (text, values) => pool.query(text, values),
        async connect() {
            const client = await pool.connect();
            return {
                query: (text, values) => client.query(text, values),
                on: (event, listener) => client.on(event, listener),
                removeListener: (event, listener) => client.removeListener(event, listener),
                release: (destroy) => client.release(destroy),
            } satisfies ClientLike;
        },
    };
}

const whole = ({ texts: pieces }: TextBatch): string =>
    present(pieces)
        .map((piece) => Buffer.from(piece).toString())
        .join();

for (const { name, open } of databases) {
    t.test(`texts that are copied out of ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        const [copied, read] = [reading(pool), reading(plain(pool))];

        t.test('are those that a query reads, as bytes in pieces', async (t) => {
            const [batch, expected] = [await copied(texts()), await read(texts())];
            t.equal(whole(batch), whole(expected));
            t.match(
                [batch, expected],
                [
                    { rows: 3000, last: 3000 },
                    { rows: 3000, last: 3000 },
                ],
            );
            const sizes = present(batch.texts).map(({ length }) => length);
            t.ok(sizes.length > 10 && Math.max(...sizes) <= 65_536, `${sizes}`);
            t.ok(present(batch.texts).every((piece) => piece instanceof Uint8Array));
        });

        t.test('are one piece for a row that is larger than others', async (t) => {
            const long = texts('n in (7, 8, 9)', `case n when 8 then repeat('ä', 100000) else 'short' end`);
            const batch = await copied(long);
            t.equal(whole(batch), `short,${'ä'.repeat(100_000)},short`);
            t.equal(present(batch.texts).length, 3);
        });

        t.test('are none of rows of which one has none, which are counted all the same', async (t) => {
            const some = texts('n > 10', `case when n <> 1500 then 'x' end`);
            t.same([await copied(some), await read(some)], Array(2).fill({ texts: null, last: 3000, rows: 2990 }));
            t.same([await copied(texts('n < 0')), await read(texts('n < 0'))], Array(2).fill({ texts: [], last: null, rows: 0 }));
        });

        t.test('leave the connection as it was when they fail half-way', async (t) => {
            const failing = texts('true', `(1 / (2000 - n))::text`);
            await t.rejects(copied(failing), { code: '22012' });
            await t.rejects(read(failing), { code: '22012' });
            t.equal(whole(await copied(texts('n = 1', `'on'`))), 'on');
        });
    });
}

t.test('is waited for no longer than the pool lets queries take', async (t) => {
    const [database] = databases;
    const { pool, stop } = await present(database).open();
    t.after(stop);
    const { connectionString } = pool.options as { readonly connectionString: string };
    const limited = new pg.Pool({ connectionString, query_timeout: 1_000 });
    t.after(() => limited.end());
    await t.rejects(reading(limited)(texts('n = 1', `pg_sleep(5)::text`)), { code: 'UNAVAILABLE' });
    t.equal(whole(await reading(limited)(texts('n = 1', `'on'`))), 'on');
});
