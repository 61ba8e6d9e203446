import { readFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { findTemplate } from '../../adapters/pglite/template.ts';
import { type ClientLike, migrate, type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { idsFrom, type MakeStores } from './deployment.ts';
import { START } from './timeline.ts';

/** Stores in memory. */
export const memoryStores: MakeStores = async (timeline) => {
    return memoryWebhooks({ clock: () => new Date(START + timeline.now), newId: idsFrom('9000') });
};

/** Ids come in turn. Time needs nothing: PGlite asks `Date.now`, which is that of the simulation. */
const PREPARED = `
create sequence public.ids;
alter table scanwire.deliveries
    alter column id set default ('00000000-0000-4000-9000-' || lpad(to_hex(nextval('public.ids')), 12, '0'))::uuid`;

const EMPTIED = `
truncate scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.attempts, scanwire.worker_sessions, scanwire.deployment
    restart identity;
alter sequence public.ids restart`;

/** A database in this thread, whose answers take no time of the simulation: between two statements nothing else happens. */
export interface SimulatedDatabase {
    readonly stores: MakeStores;
    close(): Promise<void>;
}

/** Opens a database for any number of simulations, one after the other: the SQL of the PostgreSQL stores, on PGlite. */
export async function openSimulatedDatabase(): Promise<SimulatedDatabase> {
    const template = findTemplate();
    const database = await PGlite.create(template === null ? {} : { loadDataDir: new Blob([await readFile(template)]) });
    const pool = poolOf(database);
    await migrate(pool);
    await database.exec(PREPARED);

    return {
        stores: async () => {
            await database.exec(EMPTIED);
            return postgresWebhooks({ pool });
        },
        close: () => database.close(),
    };
}

function poolOf(database: PGlite): PoolLike {
    const query = async <Row>(text: string, values?: unknown[]): Promise<{ rows: Row[]; rowCount: number | null }> => {
        // Only without parameters may there be several statements.
        const last = values === undefined ? (await database.exec(text)).at(-1) : await database.query<Row>(text, values);
        return { rows: (last?.rows ?? []) as Row[], rowCount: last?.affectedRows ?? null };
    };
    const client: ClientLike = { query, release: () => undefined, on: () => undefined, removeListener: () => undefined };
    return { query, connect: async () => client };
}
