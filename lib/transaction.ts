import { ScanwireError } from './errors.ts';

/**
 * The part of a `pg` client that a store needs to take part in somebody's transaction. A checked-out `pg.PoolClient`
 * fits, and so does a small object around a query builder's transaction.
 */
export interface Executor {
    query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<{ rows: Row[]; rowCount: number | null }>;
}

/**
 * Refuses what each of whose statements would be a transaction of its own, and what has no `query`.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `tx`.
 */
export function assertTransaction(tx: Executor): void {
    const refusal = wrongTransaction(tx);
    if (refusal !== null) {
        throw new ScanwireError('MISCONFIGURED', `tx must be an open transaction of the application: ${refusal}`, { field: 'tx' });
    }
}

function wrongTransaction(tx: object | null): string | null {
    if (typeof (tx as Partial<Executor> | null)?.query !== 'function') {
        return 'it has no query(text, values)';
    }

    // A client has `connect` as well, but only a pool counts its clients.
    return 'connect' in (tx as object) && 'totalCount' in (tx as object) ? 'a pool is no transaction' : null;
}
