import { readFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { findTemplate } from '../../adapters/pglite/template.ts';
import { type ClientLike, migrate, type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { idsFrom, type MakeStores } from './deployment.ts';
import { START, type Timeline } from './timeline.ts';

/** Stores in memory. */
export const memoryStores: MakeStores = async (timeline) => {
    return memoryWebhooks({ clock: () => new Date(START + timeline.now), newId: idsFrom('9000') });
};

/** The time is set before each statement, and ids come in turn. */
const PREPARED = `
create table public.simulated (at timestamptz not null, ids bigint not null);
insert into public.simulated values (now(), 0);
create or replace function scanwire.now() returns timestamptz language sql volatile as 'select at from public.simulated';
create function public.next_id() returns uuid language sql volatile as $$
    update public.simulated set ids = ids + 1
    returning ('00000000-0000-4000-9000-' || lpad(to_hex(ids), 12, '0'))::uuid
$$;
alter table scanwire.deliveries alter column id set default public.next_id()`;

const EMPTIED = `
truncate scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.attempts, scanwire.worker_sessions restart identity;
update public.simulated set ids = 0`;

/** A database in this thread, whose answers take no time of the simulation: between two statements nothing else happens. */
export interface SimulatedDatabase {
    readonly stores: MakeStores;
    close(): Promise<void>;
}

/** Opens a database for any number of simulations, one after the other: the SQL of the PostgreSQL stores, on PGlite. */
export async function openSimulatedDatabase(): Promise<SimulatedDatabase> {
    const template = findTemplate();
    const database = await PGlite.create(template === null ? {} : { loadDataDir: new Blob([await readFile(template)]) });
    let timeline: Timeline | null = null;
    const pool = poolOf(database, () => timeline);
    await migrate(pool);
    await database.exec(PREPARED);

    return {
        stores: async (own) => {
            timeline = null;
            await database.exec(EMPTIED);
            timeline = own;
            return postgresWebhooks({ pool });
        },
        close: () => database.close(),
    };
}

function poolOf(database: PGlite, timeline: () => Timeline | null): PoolLike {
    let set = -1;

    async function setTime(): Promise<void> {
        const now = timeline()?.now ?? set;
        if (now !== set) {
            set = now;
            await database.query('update public.simulated set at = $1', [new Date(START + now)]);
        }
    }

    async function query<Row>(text: string, values?: unknown[]): Promise<{ rows: Row[]; rowCount: number | null }> {
        if (values === undefined) {
            const results = await database.exec(text);
            const last = results.at(-1);
            return { rows: (last?.rows ?? []) as Row[], rowCount: last?.affectedRows ?? null };
        }

        await setTime();
        const { rows, affectedRows } = await database.query<Row>(text, values);
        return { rows, rowCount: affectedRows ?? null };
    }

    const client: ClientLike = { query, release: () => undefined, on: () => undefined, removeListener: () => undefined };
    return { query, connect: async () => client };
}
