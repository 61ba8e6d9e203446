import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { redisServer } from '../test/support/redis-server.ts';
import { testDatabase } from '../test/support/test-database.ts';
import type { ServerUrls } from './cpu-time.ts';
import type { Figures } from './section.ts';

/** Where a sender keeps what it accepts. */
export interface SenderStore {
    /** Of its own. */
    readonly folder: string;
    readonly urls: Readonly<Record<string, string>> & ServerUrls;
    /** Counts the rows for the planner, where there is a server, so that it is not left to when the next autovacuum happens to come. */
    analyze(): Promise<void>;
    /** Adds so many deliveries of scanwire that are done, each like one that is there. */
    keep(count: number): Promise<void>;
    /** Adds so many deliveries to each exporter of scanwire that were given up, of events that receivers do not count, and vacuums: autovacuum would, within a minute. */
    addFailed(events: number): Promise<void>;
    /** Adds waiting first tries to all exporters of scanwire, while no table is vacuumed by itself any more. */
    addUnvacuumed(events: number): Promise<void>;
    /** SQL statements so far that clients have called; null where PostgreSQL does not count them. */
    sqlCalls(): Promise<number | null>;
    /** What clients call while the task goes on: `sql` statements and `redis` commands. What scripts and functions call is none of these. */
    clientCalls(task: () => Promise<void>): Promise<Figures>;
    remove(): Promise<void>;
}

/** What a sender needs: a `database` and a Redis that are empty, the `redis` that all share, or neither. */
export interface StoreNeeds {
    readonly database?: boolean;
    readonly redis?: 'shared' | 'own';
}

export async function emptyStore({ database: wantsDatabase = false, redis: wanted }: StoreNeeds): Promise<SenderStore> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const ownRedis = wanted === 'own' ? await redisIn(join(folder, 'redis')) : null;
    const redis = wanted === 'shared' ? process.env.REDIS_URL : ownRedis?.url;
    const database = wantsDatabase ? await testDatabase() : null;
    const rows = database === null ? null : new pg.Pool({ connectionString: database.url, max: 2 });
    const query = async (text: string, values: readonly unknown[] = []): Promise<void> => {
        await rows?.query(text, [...values]);
    };
    let looks = 0;
    const sqlCalls = async (): Promise<number | null> => {
        const calls = rows === null ? null : await callsIn(rows);
        looks += 1;
        return calls === null ? null : calls - looks * CALLS_OF_A_LOOK;
    };
    return {
        folder,
        urls: { ...(database !== null && { DATABASE_URL: database.url }), ...(redis !== undefined && { REDIS_URL: redis }) },
        analyze: () => query('analyze'),
        keep: (count) => query(KEEP, [count]),
        sqlCalls,

        async addFailed(events) {
            await query(ADD_FAILED, [events, 1_000]);
            await query('vacuum (analyze)');
        },

        async addUnvacuumed(events) {
            await query(WITHOUT_AUTOVACUUM);
            await query(ADD, [events, 1_000]);
        },

        async clientCalls(task) {
            const before = await sqlCalls();
            const commands = await (redis === undefined ? task() : commandsOf(redis, task));
            const after = await sqlCalls();
            return {
                ...(before !== null && after !== null && { sql: after - before }),
                ...(commands !== undefined && { redis: commands }),
            };
        },

        async remove() {
            await rows?.end();
            await database?.drop();
            await ownRedis?.kill();
            await rm(folder, { recursive: true });
        },
    };
}

async function redisIn(folder: string): ReturnType<typeof redisServer> {
    await mkdir(folder);
    return redisServer(folder);
}

/** Waiting first tries. Each of these is one event. */
export const ADD = `
with added as (
    insert into scanwire.events (id, kind, body, created_at)
    select i.id, 'idr_investigation_created', '{"investigationId":"' || i.id || '","description":"' || repeat('x', $2) || '"}', scanwire.now()
    from (select gen_random_uuid() as id from generate_series(1, $1)) i
    returning id
)
insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector)
select a.id, e.id, scanwire.now(), 1, e.collector from added a cross join scanwire.exporters e`;

/** Tries in vain, of whose attempts the last one is kept. */
const ADD_FAILED = `
with added as (
    insert into scanwire.events (id, kind, body, created_at)
    select gen_random_uuid(), 'idr_investigation_created', '{"description":"' || repeat('x', $2) || '"}', scanwire.now()
    from generate_series(1, $1::integer)
    returning id, kind, created_at
),
failed as (
    insert into scanwire.deliveries (
        event_id, kind, accepted_at, exporter_id, due_at, queued_at, claimed_at, finished_at, priority, attempts, round, collector, state, last_code
    )
    select
        a.id, a.kind, a.created_at, e.id, a.created_at, a.created_at, a.created_at, a.created_at, 2, 8, 8, e.collector, 'exhausted', 'server_error'
    from added a
    cross join scanwire.exporters e
    returning id, claimed_at
)
insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
select f.id, 8, f.claimed_at, f.claimed_at, f.id::text, false, '{"code":"server_error","detail":null,"timings":{"total":5}}'
from failed f`;

/** The sample is the newest that is done, since what the start of an exporter sends is smaller. */
const KEEP = `
with sample as materialized (
    select * from scanwire.deliveries where stage = 'delivered' order by seq desc limit 1
),
added as (
    insert into scanwire.events (id, kind, body, created_at)
    select gen_random_uuid(), e.kind, e.body, e.created_at
    from sample s
    join scanwire.events e on e.id = s.event_id
    cross join generate_series(1, $1)
    returning id
),
kept as (
    insert into scanwire.deliveries (
        event_id, kind, accepted_at, exporter_id, due_at, queued_at, claimed_at, finished_at, priority, attempts, round, collector, state, last_code
    )
    select
        a.id, s.kind, s.accepted_at, s.exporter_id, s.due_at, s.queued_at, s.claimed_at, s.finished_at, s.priority, s.attempts, s.round, s.collector,
        s.state, s.last_code
    from added a
    cross join sample s
    returning id
)
insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
select k.id, a.number, a.started_at, a.finished_at, a.token, a.lost, a.outcome
from kept k
cross join sample s
join scanwire.attempts a on a.delivery_id = s.id`;

const WITHOUT_AUTOVACUUM = `do $$
declare
    kept regclass;
begin
    for kept in select c.oid from pg_class c where c.relnamespace = 'scanwire'::regnamespace and c.relkind = 'r' loop
        execute format('alter table %s set (autovacuum_enabled = off)', kept);
    end loop;
end
$$`;

/** Statements of `callsIn`, which are counted as well. */
const CALLS_OF_A_LOOK = 3;

async function callsIn(rows: pg.Pool): Promise<number | null> {
    const { rows: loaded } = await rows.query(
        `select from pg_settings where name = 'shared_preload_libraries' and setting like '%pg_stat_statements%'`,
    );
    if (loaded.length === 0) {
        return null;
    }

    await rows.query('create extension if not exists pg_stat_statements');
    const { rows: counted } = await rows.query<{ calls: number }>(
        `select coalesce(sum(s.calls), 0)::float8 as calls from pg_stat_statements s
        join pg_database d on d.oid = s.dbid where d.datname = current_database()`,
    );
    return counted[0]?.calls ?? 0;
}

const END = 'the end of what is counted';

/** Redis slows down while it tells of each command, so what is counted is not timed. */
async function commandsOf(url: string, task: () => Promise<void>): Promise<number> {
    const client = new Redis(url);
    // What it asks of its own when it connects is then over.
    await client.ping();
    const monitor = await client.monitor();
    const told = new EventEmitter();
    let commands = 0;
    monitor.on('monitor', (_, [name = '', text]: readonly string[], source: string) => {
        if (name.toLowerCase() === 'echo' && text === END) {
            told.emit('end');
        } else if (source !== 'lua') {
            commands += 1;
        }
    });
    try {
        await task();
        const ended = once(told, 'end');
        await client.echo(END);
        await ended;
        return commands;
    } finally {
        monitor.disconnect();
        client.disconnect();
    }
}
