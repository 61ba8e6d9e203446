import type { Executor } from '../../lib/transaction.ts';
import { inTurn } from './giving-way.ts';

/** With so many bytes, its indexes included, a table is large. */
export const LARGE: number = 8 * 1_048_576;

/** The statement that analyses a table, a large one by half as many rows as others, in half the time. */
export function analysis(name: string, large: boolean): string {
    return `${large ? 'set local default_statistics_target = 5; ' : ''}analyze ${name}`;
}

/** Analyses a table unless others wait: then it is left to the clearing up of the database. */
export async function analyseInTurn(database: Executor, name: string): Promise<void> {
    const { rows } = await database.query<{ large: boolean }>(
        'select pg_catalog.pg_total_relation_size($1::pg_catalog.regclass) > $2 as large',
        [name, LARGE],
    );
    await inTurn(database, analysis(name, rows[0]?.large ?? false));
}
