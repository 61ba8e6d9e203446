import { createHash } from 'node:crypto';
import { addressKey, hostKey } from '../../lib/addresses.ts';
import { withinBoundary } from '../../lib/inventory/boundary.ts';
import { type Endpoint, endpointsOf, withRefused } from '../../lib/records/endpoints.ts';
import { type HttpsRecord, stringifyRecord } from '../../lib/records/record.ts';
import type { AddedRecord, Enrichment, RecordQuery, RecordStore, StoredRecord } from '../../lib/records/store.ts';
import { readingFrom } from '../../lib/store-source.ts';
import type { Executor } from '../../lib/transaction.ts';
import {
    assertStoreOptions,
    IMPATIENT,
    IMPATIENT_OF_SILENCE,
    IMPATIENT_ON_SERVER,
    type PostgresStoresOptions,
    patiently,
    transaction,
} from './database.ts';
import { forgetImports } from './imports/remembered-imports.ts';
import { inTurn, readWorkspace } from './inventory/workspaces.ts';
import { storeClock } from './store-clock.ts';

const COLUMNS = 'id, imported_at, record';

/**
 * One transaction stores records at a time, until it ends. So ids become visible in ascending order, and two that store the same
 * records do not wait for each other's rows.
 */
const TAKE_TURN = "select pg_advisory_xact_lock(hashtextextended('scanwire.records', 0))";

/** How long records that enrich wait for an import, in milliseconds: somebody waits for the answer. */
const PATIENCE = 20_000;

interface RecordRow {
    /** `bigint`, which node-postgres gives as text. */
    readonly id: string;
    readonly imported_at: Date;
    readonly record: string;
}

/** HTTPS scan records in the table of migration `0003-records`; they enrich the inventory of the same database. */
export function postgresRecords(options: PostgresStoresOptions): RecordStore {
    assertStoreOptions(options, 'postgresRecords');
    const { pool } = options;
    const clock = storeClock(options.clock);
    const database = patiently(pool, IMPATIENT);
    const searching = patiently(pool, IMPATIENT_ON_SERVER);
    /** By workspace: whoever waits for an import holds up nobody else. */
    const last = new Map<string | undefined, Promise<unknown>>();

    async function add(records: readonly HttpsRecord[], enrich: Enrichment | undefined, giveUpAt: number): Promise<readonly AddedRecord[]> {
        if (enrich === undefined) {
            const insert = async (client: Executor): Promise<readonly AddedRecord[]> => {
                await client.query(TAKE_TURN);
                return await insertRecords(client, records, await clock(client));
            };
            return await transaction(pool, insert, IMPATIENT_OF_SILENCE);
        }

        // In this order, in which processes of the version before take the two locks: in the other one they lock each other out.
        const turn = { name: enrich.workspace, clock, lock: TAKE_TURN, giveUpAt, patience: IMPATIENT_OF_SILENCE };
        return await inTurn(pool, turn, async (client, workspaceId) => {
            const at = await clock(client);
            const within = withinBoundary(await readWorkspace(client, workspaceId));
            const added = await insertRecords(client, records, at);
            const isNew = added.map((one) => one.isNew);
            const isLeftOut = (address: string): boolean => !within.letsIn({ address });
            const endpoints = endpointsOf(records, isNew).filter(({ address }) => !isLeftOut(address));
            await enrichInventory(client, workspaceId, endpoints, at);
            return withRefused(added, records, isLeftOut);
        });
    }

    return readingFrom(pool, {
        enriches: true,

        async add(records, { enrich } = {}) {
            if (records.length === 0) {
                return [];
            }

            // Those who wait for their turn wait here, where they hold no connection of the pool.
            const before = last.get(enrich?.workspace);
            const giveUpAt = performance.now() + PATIENCE;
            const added = Promise.resolve(before).then(() => add(records, enrich, giveUpAt));
            const settled = added.then(ignore, ignore);
            last.set(enrich?.workspace, settled);
            try {
                return await added;
            } finally {
                if (last.get(enrich?.workspace) === settled) {
                    last.delete(enrich?.workspace);
                }
            }
        },

        async get(id) {
            const known = Number.isSafeInteger(id) ? id : null;
            const { rows } = await database.query<RecordRow>(`select ${COLUMNS} from scanwire.records where id = $1`, [known]);
            return rows[0] === undefined ? null : recordFromRow(rows[0]);
        },

        list: (query) => list(searching, query),

        async count(filter) {
            const values: unknown[] = [];
            const sql = `select count(*) from scanwire.records where ${conditionsOf(filter, values).join(' and ')}`;
            const { rows } = await searching.query<{ count: string }>(sql, values);
            return Number(rows[0]?.count ?? 0);
        },
    });
}

/** How others ended is theirs to know. */
function ignore(): void {}

/** Times ascend with ids, so a time is found once instead of looked for in every row that the listing passes. */
const FIRST_SINCE = '(select id from scanwire.records where imported_at >= ? order by imported_at, id limit 1)';
const LARGEST_ID = '9223372036854775807';

async function list(database: Executor, { limit, ...query }: RecordQuery): Promise<StoredRecord[]> {
    const values: unknown[] = [limit];
    const conditions = conditionsOf(query, values);
    const sql = `select ${COLUMNS} from scanwire.records where ${conditions.join(' and ')} order by id limit $1`;
    const { rows } = await database.query<RecordRow>(sql, values);
    return rows.map(recordFromRow);
}

/** Their values go behind those that are there. */
function conditionsOf(query: Omit<RecordQuery, 'limit'>, values: unknown[]): readonly string[] {
    const { ip, host, importedFrom, importedBefore, after } = query;
    const condition = (sql: string, value: unknown): string[] => (value === undefined ? [] : [sql.replace('?', `$${values.push(value)}`)]);
    return [
        'true',
        ...condition('ip = ?', ip === undefined ? undefined : addressKey(ip)),
        ...condition('host = ?', host === undefined ? undefined : hostKey(host)),
        ...condition(`id >= ${FIRST_SINCE}`, importedFrom),
        ...condition(`id < coalesce(${FIRST_SINCE}, ${LARGEST_ID})`, importedBefore),
        ...condition('id > ?', after),
    ];
}

function recordFromRow({ id, imported_at, record }: RecordRow): StoredRecord {
    return { id: Number(id), importedAt: imported_at, record: JSON.parse(record) as HttpsRecord };
}

/** The time never goes back, whatever the clock does. What is not found is safe to insert: no other transaction stores records at the same time. */
const INSERT = `with given as materialized (
    select input.*, known.id as known_id
    from (
        select decode(hex, 'hex') as digest, ip, host, record, index
        from unnest($1::text[], $2::inet[], $3::text[], $4::text[]) with ordinality as element (hex, ip, host, record, index)
    ) input
    left join scanwire.records known on known.digest = input.digest
), added as (
    insert into scanwire.records (digest, imported_at, ip, host, record)
    select digest, greatest($5, (select max(imported_at) from scanwire.records)), ip, host, record from given where known_id is null order by index
    returning id, digest
)
select coalesce(given.known_id, added.id) as id, given.known_id is null as is_new
from given left join added using (digest)
order by given.index`;

/** Stores the records that are not there yet, in their order. To be called in a transaction that holds the turn of the table. */
async function insertRecords(client: Executor, records: readonly HttpsRecord[], at: Date): Promise<readonly AddedRecord[]> {
    const inputs = records.map((record) => {
        const line = stringifyRecord(record);
        return { record, line, digest: createHash('sha256').update(line).digest('hex') };
    });
    const different = [...new Map(inputs.map((input) => [input.digest, input])).values()];
    const { rows } = await client.query<{ id: string; is_new: boolean }>(INSERT, [
        different.map(({ digest }) => digest),
        different.map(({ record }) => addressKey(record.ip)),
        different.map(({ record }) => hostKey(record.host)),
        different.map(({ line }) => line),
        at,
    ]);
    const ids = new Map(different.map(({ digest }, index) => [digest, Number(rows[index]?.id)]));
    const fresh = new Set(different.filter((_, index) => rows[index]?.is_new).map(({ digest }) => digest));
    // What comes again is not new any more.
    return inputs.map(({ digest }) => ({ id: ids.get(digest) as number, isNew: fresh.delete(digest) }));
}

const TOUCH_HOSTS = `with touched as (
    update scanwire.hosts set updated_at = $2 where workspace_id = $1 and address = any ($3::inet[]) returning id
)
update scanwire.sightings set seen_at = $2 from touched where host_id = touched.id`;

/** No identity is spent on what is there: ids are of 32 bits, and files come again and again. */
const ADD_HOSTS = `insert into scanwire.hosts (workspace_id, address, name, created_at, updated_at)
select $1, given.address, coalesce(given.name, ''), $2, $2
from unnest($3::inet[], $4::text[]) with ordinality as given (address, name, index)
where not exists (select from scanwire.hosts where workspace_id = $1 and address = given.address)
order by given.index
on conflict (workspace_id, address) do nothing`;

/** Looked up one by one (`offset 0`): joins took 0.5 s for a batch where the tables had grown since their last `analyze`. */
const HOST = '(select id from scanwire.hosts where workspace_id = $1 and address = given.address offset 0) as host';

const TOUCH_SERVICES = `update scanwire.services set state = 'open', name = 'https', updated_at = $2
from (
    select service.id from unnest($3::inet[], $4::integer[]) as given (address, port)
    cross join lateral ${HOST}
    cross join lateral (select id from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp' offset 0) as service
    offset 0
) found
where services.id = found.id`;

const ADD_SERVICES = `insert into scanwire.services (host_id, port, proto, state, name, created_at, updated_at)
select host.id, given.port, 'tcp', 'open', 'https', $2, $2
from unnest($3::inet[], $4::integer[]) with ordinality as given (address, port, index)
cross join lateral ${HOST}
where not exists (select from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp')
order by given.index
on conflict (host_id, port, proto) do nothing`;

/** Puts the endpoints into the workspace of that id, as `RecordStore.add` says; part of the transaction of its only writer. */
async function enrichInventory(client: Executor, id: number, endpoints: readonly Endpoint[], at: Date): Promise<void> {
    await client.query('update scanwire.workspaces set generation = 0 where id = $1 and generation < 0', [id]);
    await forgetImports(client, [id]);
    const hosts = [...new Map(endpoints.map((endpoint) => [endpoint.address, endpoint])).values()];
    const fresh = endpoints.filter(({ isNew }) => isNew);
    await client.query(TOUCH_HOSTS, [id, at, addresses(fresh)]);
    await client.query(ADD_HOSTS, [id, at, addresses(hosts), hosts.map(({ name }) => name)]);
    await client.query(TOUCH_SERVICES, [id, at, addresses(fresh), ports(fresh)]);
    await client.query(ADD_SERVICES, [id, at, addresses(endpoints), ports(endpoints)]);
}

function addresses(endpoints: readonly Endpoint[]): string[] {
    return endpoints.map(({ address }) => address);
}

function ports(endpoints: readonly Endpoint[]): number[] {
    return endpoints.map(({ port }) => port);
}
