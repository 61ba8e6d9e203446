import t from 'tap';
import { addExporters } from './examination.ts';
import { explainedDatabase } from './executed-plans.ts';
import { wayOf } from './way.ts';

/** Steps of the way whose statements are planned each time, and why. */
const NOT_PREPARED: Readonly<Record<string, string>> = {
    'accept in a transaction': 'nothing is named on a connection of the application',
    'read subscriptions': 'only after one has changed',
    'name the sessions': 'only at a start, and for people',
    'end sessions': 'only at a start and a stop',
    'get a delivery': 'only for people',
    'list its attempts': 'only for people',
    'list its responses': 'only for people',
    'fold what has ended': 'called by the test itself',
    'fold nothing': 'called by the test itself',
};

t.test("a connection prepares every statement of a delivery's way, but for those that are listed", async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    await addExporters(pool);
    await wayOf(connection);
    const way = await wayOf(connection);
    const { rows } = await connection.pool.query<{ statement: string }>(
        `select statement from pg_prepared_statements where name like 'scanwire%'`,
    );
    const kept = new Set(rows.map(({ statement }) => statement));
    const unprepared = [...way].filter(([, { text }]) => !kept.has(text)).map(([step]) => step);
    t.strictSame(unprepared.toSorted(), Object.keys(NOT_PREPARED).toSorted());
});
