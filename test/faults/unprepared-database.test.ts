import { randomBytes, randomUUID } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import t, { type Test } from 'tap';
import { postgresQueue } from '../../adapters/bullmq/index.ts';
import { only } from '../../adapters/contract/assertions.ts';
import { forAll, holderOf, sampleEvent, sampleExporter, success } from '../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { migrate, postgresStores, transaction } from '../../adapters/postgres/index.ts';
import { migrations } from '../../adapters/postgres/migrations/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';
import { BREAKER, HAND_OUT } from '../plans/way.ts';
import { testDatabase } from '../support/test-database.ts';

/* What the driver says of a database that nobody has prepared told an operator nothing of what to do. */

const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

async function database(t: Test): Promise<{ owner: pg.Pool; as: (role: string) => pg.Pool }> {
    const { url, drop } = await testDatabase();
    const owner = new pg.Pool({ connectionString: url });
    const pools = [owner];
    t.teardown(async () => {
        await Promise.all(pools.map((pool) => pool.end()));
        await drop();
    });
    return {
        owner,
        as(role) {
            const pool = new pg.Pool({ connectionString: url, options: `-c role=${role}` });
            pools.push(pool);
            return pool;
        },
    };
}

t.test('names migrate where it was forgotten, and does not start', async (t) => {
    const { owner } = await database(t);
    const { apiKeys, inventory, records, webhooks } = postgresStores({ pool: owner });
    const forgotten = { code: 'MISCONFIGURED', message: /run migrate\(pool\)/, cause: { code: /^(?:42P01|3F000)$/ } };
    await t.rejects(webhooks.exporters.list(), forgotten);
    await t.rejects(webhooks.deliveries.now(), forgotten);
    await t.rejects(apiKeys.list(), forgotten);
    await t.rejects(inventory.workspaces.get([], 1), forgotten);
    await t.rejects(records.get(1), forgotten);

    const withKeys = hapiServer();
    await withKeys.register({ plugin: tokenAuth, options: { store: apiKeys, keyRing: ring } });
    await t.rejects(withKeys.initialize(), forgotten, 'token-auth');
    const withWebhooks = hapiServer();
    await withWebhooks.register({ plugin: webhookExporter, options: { stores: webhooks, queue: memoryQueue(), keyRing: ring } });
    await t.rejects(withWebhooks.initialize(), forgotten, 'webhook-exporter');
});

t.test('names migrate where the schema is older than the package', async (t) => {
    const { owner } = await database(t);
    await migrate(owner);
    await owner.query('alter table scanwire.api_keys rename column last_used_at to used_at');
    await t.rejects(postgresStores({ pool: owner }).apiKeys.list(), { code: 'MISCONFIGURED', message: /run migrate\(pool\).*42703/ });
});

/** The name of a role without any rights, which is gone after the test. */
async function poorRole(t: Test, owner: pg.Pool): Promise<string> {
    const role = `scanwire_poor_${randomBytes(4).toString('hex')}`;
    await owner.query(`create role ${role}`);
    t.teardown(async () => {
        await owner.query(`drop owned by ${role}`);
        await owner.query(`drop role ${role}`);
    });
    return role;
}

t.test('says which rights a role lacks', async (t) => {
    const { owner, as } = await database(t);
    const role = await poorRole(t, owner);
    const poor = as(role);
    const refused = { code: 'MISCONFIGURED', message: /lacks a right.*usage on the schema scanwire.*\(42501\)/, cause: { code: '42501' } };
    const denied = (message: RegExp): typeof refused => ({ ...refused, message });
    await t.rejects(
        migrate(poor),
        denied(/^The migration that keeps the ledger was refused: .*; grant create on database \w+ to the role/),
    );
    await owner.query(`create schema scanwire; grant usage on schema scanwire to ${role}`);
    await t.rejects(migrate(poor), denied(/ledger was refused: .*\(42501\); grant create on schema scanwire to the role of the pool$/));
    await owner.query('drop schema scanwire');
    await migrate(owner);
    await owner.query(`grant usage, create on schema scanwire to ${role}; grant select, insert on scanwire.migration to ${role}`);
    const more = { id: '9999-more', sql: 'alter table scanwire.hosts add column more text' };
    await t.rejects(
        migrate(poor, { steps: [...migrations, more] }),
        denied(/^The migration 9999-more was refused: must be owner of table hosts \(42501\); the role must own what it changes$/),
    );
    await owner.query(`revoke all on schema scanwire from ${role}; revoke all on scanwire.migration from ${role}`);
    await t.rejects(postgresStores({ pool: poor }).apiKeys.list(), refused);
    await owner.query(`grant usage on schema scanwire to ${role}`);
    await t.rejects(postgresStores({ pool: poor }).webhooks.exporters.list(), refused);
    await owner.query(`grant select, insert, update, delete on all tables in schema scanwire to ${role}`);
    t.strictSame(await postgresStores({ pool: poor }).webhooks.exporters.list(), []);
});

t.test('says which rights a role lacks for the queue, and what else keeps the queue from its database', async (t) => {
    const { owner, as } = await database(t);
    const role = await poorRole(t, owner);
    const queues = [as(role), as(role), as(role), owner].map((pool) => postgresQueue({ pool }));
    t.teardown(() => Promise.all(queues.map((queue) => queue.close())));
    const [poor, creating, owning, prepared] = queues as [DeliveryQueue, DeliveryQueue, DeliveryQueue, DeliveryQueue];
    const refused = {
        code: 'MISCONFIGURED',
        message:
            /^The role of the pool lacks a right that the queue needs: create on the database.*owner.*schema bullmq.*\((?:42501|3F000)\)$/,
        cause: { code: /^(?:42501|3F000)$/ },
    };
    await t.rejects(poor.ready(), refused);
    await prepared.ready();
    await owner.query(`do $$ begin execute format('grant create on database %I to ${role}', current_database()); end $$`);
    await t.rejects(creating.ready(), refused, 'of a schema that is not its own');
    await owner.query('drop schema bullmq cascade');
    await owning.ready();

    // A right that is taken away afterwards.
    await owner.query(`revoke insert on bullmq.job from ${role}`);
    const job = { collector: 'default', deliveryId: randomUUID(), attempt: 1, singleAttempt: false, reservation: null };
    await t.rejects(owning.add([job]), refused);
});

t.test('says in words why the queue cannot reach its database', async (t) => {
    const { owner } = await database(t);
    const queue = postgresQueue({ pool: owner });
    t.teardown(() => queue.close());
    await owner.query(`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`);
    await t.rejects(queue.ready(), {
        code: 'UNAVAILABLE',
        message:
            'PostgreSQL cannot be reached: the server takes no writes, as a standby after a fail-over: the address of the pool must lead to the primary (25006)',
    });
});

t.test('hands out as a role that owns nothing, also what was made after it got its rights', async (t) => {
    const { owner, as } = await database(t);
    const role = `scanwire_serving_${randomBytes(4).toString('hex')}`;
    await owner.query(`create role ${role}`);
    t.teardown(async () => {
        await owner.query(`drop owned by ${role}`);
        await owner.query(`drop role ${role}`);
    });
    await migrate(owner);
    await owner.query(`grant usage on schema scanwire to ${role}`);
    await owner.query(`grant select, insert, update, delete on all tables in schema scanwire to ${role}`);
    // As if the newest step that every hand-out needs came later.
    await owner.query('drop table scanwire.exporter_turns cascade');
    await owner.query('drop sequence scanwire.turns_taken');
    await owner.query(
        'drop function scanwire.forget_turn() cascade; drop function scanwire.turns_of(uuid[]); drop function scanwire.take_turn(uuid)',
    );
    await owner.query(`delete from scanwire.migration where id = '0075-turns'`);
    await migrate(owner);

    const { exporters, deliveries } = postgresStores({ pool: as(role) }).webhooks;
    await deliveries.keepAlive({ id: randomUUID(), process: 'one', slots: { default: 1 } }, 60_000);
    await exporters.insert(sampleExporter({ id: randomUUID() }));
    await exporters.insert(sampleExporter({ id: randomUUID() }));
    await deliveries.accept([forAll(sampleEvent())]);
    const handOut = () => deliveries.dispatch({ window: 5, breakerAfter: 5, beginWithin: 10_000, limit: 10 });
    t.equal((await handOut()).handedOut.length, 1, 'two want the one place of slow exporters');
    t.equal((await owner.query('select from scanwire.exporter_turns')).rowCount, 1);
});

t.test('ends deliveries as a role that owns nothing, and had its rights before these were counted', async (t) => {
    const { owner, as } = await database(t);
    const role = `scanwire_ending_${randomBytes(4).toString('hex')}`;
    await owner.query(`create role ${role}`);
    t.teardown(async () => {
        await owner.query(`drop owned by ${role}`);
        await owner.query(`drop role ${role}`);
    });
    await migrate(owner, {
        steps: migrations.slice(
            0,
            migrations.findIndex(({ id }) => id === '0076-counts'),
        ),
    });
    await owner.query(`grant usage on schema scanwire to ${role}`);
    await owner.query(`grant select, insert, update, delete on all tables in schema scanwire to ${role}`);
    await migrate(owner);

    const { exporters, deliveries } = postgresStores({ pool: as(role) }).webhooks;
    const exporter = sampleExporter({ id: randomUUID() });
    await exporters.insert(exporter);
    const accepted = await deliveries.accept([forAll(sampleEvent())], { handOut: HAND_OUT });
    const holder = holderOf(only(only(accepted).handedOut));
    await deliveries.recordOutcomes([success(holder, { begunAt: await deliveries.now() })], BREAKER);
    for (let sweep = 0; sweep < 10; sweep += 1) {
        await deliveries.sweep({ requeueAfter: 60_000, limit: 10 });
    }
    t.equal(await deliveries.count({ state: 'delivered', exporterId: exporter.id }, 1), 1);
    t.strictSame((await owner.query('select state, count from scanwire.delivery_counts')).rows, [{ state: 'delivered', count: '1' }]);
});

t.test("leaves what an application's own statements got in a transaction as the database said it, and ours as ours", async (t) => {
    const { owner, as } = await database(t);
    const role = `scanwire_own_${randomBytes(4).toString('hex')}`;
    await owner.query(`create role ${role}; create table findings (id integer primary key); insert into findings values (1)`);
    t.teardown(() => owner.query(`drop role ${role}`));
    const refusedTo = async (pool: pg.Pool, sql: string, code: string, values?: unknown[]) => {
        const error: unknown = await transaction(pool, (client) => client.query(sql, values)).catch((thrown: unknown) => thrown);
        t.ok(error instanceof pg.DatabaseError, sql);
        t.match(error, { code });
    };
    await refusedTo(owner, 'select misspelt from findings', '42703');
    await refusedTo(owner, 'select * from scanwire.findings', '42P01');
    await refusedTo(owner, 'insert into findings values (1)', '23505');
    await refusedTo(as(role), 'select * from findings', '42501');
    await refusedTo(owner, 'set local statement_timeout = 1; select pg_sleep(9)', '57014');
    await refusedTo(owner, "do $$ begin raise exception sqlstate '40001'; end $$", '40001');
    await refusedTo(owner, "load 'no_such_library'", '58P01');
    const idle = owner.totalCount;
    await refusedTo(owner, 'select $1::integer', '08P01', [1, 2]);
    t.equal(owner.totalCount, idle, 'the connection is sound');
    const ofPooler = transaction(owner, (client) => client.query("do $$ begin raise exception sqlstate '08P01'; end $$"));
    await t.rejects(ofPooler, { code: 'UNAVAILABLE', cause: { code: '08P01' } });
    const locked = await owner.connect();
    await locked.query('begin; lock table findings');
    await refusedTo(owner, 'lock table findings nowait', '55P03');
    await locked.query('rollback');
    locked.release();

    const readOnly = (client: Executor) => client.query('set transaction read only; insert into findings values (2)');
    await t.rejects(transaction(owner, readOnly), { code: 'UNAVAILABLE', cause: { code: '25006' } });
    const { exporters } = postgresStores({ pool: owner }).webhooks;
    const forgotten = { code: 'MISCONFIGURED', message: /run migrate\(pool\)/ };
    await t.rejects(
        transaction(owner, async (tx) => exporters.subscribers?.(tx)),
        forgotten,
    );
    // What comes up at the end is of the application's making too.
    await owner.query('alter table findings add name text, add constraint late unique (name) deferrable initially deferred');
    await refusedTo(owner, "insert into findings values (3, 'a'), (4, 'a')", '23505');
});

t.test('says what a server is that takes no writes', async (t) => {
    const { owner } = await database(t);
    await migrate(owner);
    const standby = new pg.Pool({ ...owner.options, options: '-c default_transaction_read_only=on' });
    t.teardown(() => standby.end());
    const { apiKeys } = postgresStores({ pool: standby });
    await t.rejects(apiKeys.touch('00000000-0000-4000-8000-000000000000', new Date()), {
        code: 'UNAVAILABLE',
        message: /takes no writes, as a standby after a fail-over: .* must lead to the primary \(25006\)/,
    });
});
