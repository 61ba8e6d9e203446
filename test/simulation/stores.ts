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

/**
 * Ids come in turn. Time needs nothing: PGlite asks `Date.now`, which is that of the simulation. And what the schema holds before anything has
 * happened, rows of its own in a few tables and the places of its sequences, is kept, for each simulation to begin with exactly that.
 */
const PREPARED = `
create sequence scanwire.ids;
alter table scanwire.deliveries
    alter column id set default ('00000000-0000-4000-9000-' || lpad(to_hex(nextval('scanwire.ids')), 12, '0'))::uuid;

do $$
declare
    definition text := pg_get_functiondef('scanwire.accept_single_chosen_event'::regproc);
    by_default text := (
        select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
        where d.adrelid = 'scanwire.deliveries'::regclass and a.attname = 'id'
    );
    in_turn text := replace(definition, 'array_agg(gen_random_uuid())', format('array_agg(%s)', by_default));
begin
    assert in_turn <> definition, 'a function makes ids of its own no more';
    execute in_turn;
end $$;

create schema pristine;
create table public.places as
select format('%I.%I', schemaname, sequencename) as name, coalesce(last_value, start_value) as place, last_value is not null as is_called
from pg_sequences where schemaname = 'scanwire';

do $$
declare
    name text;
    is_empty boolean;
begin
    for name in select tablename from pg_tables where schemaname = 'scanwire' loop
        execute format('select not exists (select from scanwire.%I)', name) into is_empty;
        if not is_empty then
            execute format('create table pristine.%1$I as table scanwire.%1$I', name);
        end if;
    end loop;
end $$;

create function public.begin_anew() returns void language plpgsql as $$
declare
    name text;
begin
    -- no trigger takes part
    set local session_replication_role = replica;
    execute (select 'truncate ' || string_agg(format('scanwire.%I', tablename), ', ') from pg_tables where schemaname = 'scanwire');
    for name in select tablename from pg_tables where schemaname = 'pristine' loop
        execute format('insert into scanwire.%1$I overriding system value table pristine.%1$I', name);
    end loop;
    perform setval(p.name::regclass, p.place, p.is_called) from public.places p;
end $$`;

/** A database in this thread, whose answers take no time of the simulation: between two statements nothing else happens. */
export interface SimulatedDatabase {
    readonly pool: PoolLike;
    readonly stores: MakeStores;
    /** What all tables of the schema hold, and where its sequences are. */
    contents(): Promise<Readonly<Record<string, unknown>>>;
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
        pool,
        stores: async () => {
            await rollBackAll(database);
            await database.exec('select public.begin_anew()');
            const stores = postgresWebhooks({ pool });
            return { ...stores, ...withTransactions(stores.deliveries, database) };
        },
        contents: () => contentsOf(database),
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

async function contentsOf(database: PGlite): Promise<Readonly<Record<string, unknown>>> {
    const { rows } = await database.query<{ name: string }>(
        `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'scanwire'
        union all select format('%I.%I', schemaname, sequencename) from pg_sequences where schemaname = 'scanwire'
        order by name`,
    );
    const held = rows.map(async ({ name }) => [name, (await database.query(`select * from ${name}`)).rows] as const);
    return Object.fromEntries(await Promise.all(held));
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
