/**
 * The part of a `pg` client that a store needs to take part in somebody's transaction. A checked-out `pg.PoolClient`
 * fits, and so does a small object around a query builder's transaction.
 */
export interface Executor {
    query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<{ rows: Row[]; rowCount: number | null }>;
}
