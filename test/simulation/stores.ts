import { PGlite } from '@electric-sql/pglite';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { findTemplate, readTemplate } from '../../adapters/pglite/template.ts';
import { type ClientLike, migrate, type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { idsFrom, type MakeStores } from './deployment.ts';
import { MAX_OPEN, rollBackAll, withTransactions } from './host-transaction.ts';
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
truncate scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.order_places, scanwire.attempts, scanwire.worker_sessions,
    scanwire.deployment
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
    const database = await preparing(
        await PGlite.create(template === null ? {} : { loadDataDir: new Blob([await readTemplate(template)]) }),
    );
    const pool = poolOf(database);
    await migrate(pool);
    await database.exec(PREPARED);

    return {
        stores: async () => {
            await rollBackAll(database);
            await database.exec(EMPTIED);
            const stores = postgresWebhooks({ pool });
            return { ...stores, ...withTransactions(stores.deliveries, database) };
        },
        close: () => database.close(),
    };
}

/** The same database with room for prepared transactions, which it has only after a restart. */
async function preparing(database: PGlite): Promise<PGlite> {
    await database.exec(`alter system set max_prepared_transactions = ${MAX_OPEN}`);
    const loadDataDir = await database.dumpDataDir('none');
    await database.close();
    return await PGlite.create({ loadDataDir });
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
