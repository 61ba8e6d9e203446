import { setTimeout as sleep } from 'node:timers/promises';
import type { Executor } from './transaction.ts';

/** What a statement begins with that is cut off when others wait for the one session of the embedded database. Nothing of anybody else's is ever cut off. */
export const GIVES_WAY = '/* gives way */ ';

/** PostgreSQL's code of a statement that was cut off. */
const CANCELED = '57014';

/**
 * Runs a statement, which gives way unless it is said that it does not, and leaves the database to others for as long then: a request of several statements would
 * have to wait before each of them otherwise.
 *
 * @returns Whether it went to its end.
 */
export async function inTurn(
    database: Executor,
    statement: string,
    { givesWay = true }: { readonly givesWay?: boolean } = {},
): Promise<boolean> {
    const begun = performance.now();
    try {
        await database.query(givesWay ? GIVES_WAY + statement : statement);
        return true;
    } catch (error) {
        if ((error as { code?: unknown }).code !== CANCELED) {
            throw error;
        }
        return false;
    } finally {
        await sleep(performance.now() - begun);
    }
}

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
