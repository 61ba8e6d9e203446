import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import t from 'tap';
import { present, until } from '../../../adapters/contract/assertions.ts';
import { migrate, postgresApiKeys, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { migrationFiles } from '../../../adapters/postgres/migrate.ts';
import { migrations } from '../../../adapters/postgres/migrations/index.ts';
import { migratedDatabase } from '../../support/migrated-database.ts';
import { testDatabase } from '../../support/test-database.ts';
import { databases } from './databases.ts';

t.test('takes as long as it takes, whatever the role says of statements', async (t) => {
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const pool = new pg.Pool({ connectionString: database.url, options: '-c statement_timeout=300' });
    t.teardown(() => pool.end());
    const slow = { id: '9999-slow', sql: 'select pg_sleep(0.6)' };
    t.same((await migrate(pool, { steps: [...migrations, slow] })).at(-1), '9999-slow');
});

t.test('refuses a database that writes times in another style than node-postgres reads', async (t) => {
    const database = await migratedDatabase();
    t.teardown(() => database.drop());
    const pool = new pg.Pool({ connectionString: database.url });
    const german = new pg.Pool({ connectionString: database.url, options: '-c datestyle=German' });
    t.teardown(() => Promise.all([pool.end(), german.end()]));
    await t.rejects(migrate(german), { code: 'MISCONFIGURED', message: /DateStyle must begin with ISO/ });

    const [id, digest] = [randomUUID(), 'a'.repeat(64)];
    const key = { id, name: 'ci', digest, start: 'abcd', sealed: null, createdAt: new Date(), lastUsedAt: null, revokedAt: new Date() };
    await postgresApiKeys({ pool }).insert(key);
    t.match(await postgresApiKeys({ pool }).findByDigest(digest), { revokedAt: Date });
    await t.rejects(async () => await postgresApiKeys({ pool: german }).findByDigest(digest), {
        code: 'MISCONFIGURED',
        message: /DateStyle/,
    });
    await pool.query('update scanwire.api_keys set revoked_at = null');
    t.match(await postgresApiKeys({ pool: german }).findByDigest(digest), { revokedAt: null });
});

for (const { name, open } of databases) {
    t.test(`migrations on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);

        t.test('run once', async (t) => {
            const steps = migrations.slice(
                0,
                migrations.findIndex((step) => 'index' in step && step.index.table === 'hosts'),
            );
            const without = await Promise.all([migrate(pool, { steps }), migrate(pool, { steps })]);
            await pool.query(`insert into scanwire.hosts (workspace_id, address) select id, '192.0.2.1' from scanwire.workspaces`);
            const indexed = await Promise.all([migrate(pool), migrate(pool)]);
            t.same(
                [...without, ...indexed].flat().sort(),
                migrations.map(({ id }) => id),
            );
            t.same(await migrate(pool), []);
            const { rows } = await pool.query('select name from scanwire.workspaces');
            t.same(rows, [{ name: 'default' }]);
        });

        t.test('leave those before done when one fails, and nothing of it', async (t) => {
            const good = { id: '9998-good', sql: 'create table scanwire.good ()' };
            const bad = { id: '9999-bad', sql: 'create table scanwire.bad (); nonsense' };
            await t.rejects(migrate(pool, { steps: [...migrations, good, bad] }), { code: '42601' });
            const { rows } = await pool.query(
                `select to_regclass('scanwire.good') is not null as good, to_regclass('scanwire.bad') is not null as bad`,
            );
            t.same(rows, [{ good: true, bad: false }]);

            const mended = { ...bad, sql: 'create table scanwire.bad ()' };
            t.same(await migrate(pool, { steps: [...migrations, good, mended] }), [mended.id]);
            await pool.query(`delete from scanwire.migration where id in ('9998-good', '9999-bad')`);
        });

        t.test('refuse a database whose steps were other ones', async (t) => {
            const steps = migrations.map(({ id }) => ({ id, sql: 'select 1' }));
            await t.rejects(migrate(pool, { steps }), { code: 'MISCONFIGURED', message: /0001-inventory-and-keys/ });
        });

        t.test('refuse a database that is newer', async (t) => {
            await pool.query(`insert into scanwire.migration (id, checksum) values ('7777-later', 'x')`);
            await t.rejects(migrate(pool), { code: 'MISCONFIGURED', message: /newer than this version of scanwire.*7777-later/ });
        });
    });
}

t.test('leave API keys of before what they could do, for every workspace and without an end', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    t.after(() => pool.end());
    const before = `insert into scanwire.api_keys (id, name, digest, start, created_at) values (gen_random_uuid(), $1, $1, 'scw_', now())`;
    const upTo = migrations.findIndex(({ id }) => id === '0009-scopes');
    await migrate(pool, { steps: migrations.slice(0, upTo) });
    await pool.query(before, ['made before']);
    await migrate(pool);
    await pool.query(before, ['made by a process of the version before']);
    const keys = await postgresApiKeys({ pool }).list();
    t.equal(keys.length, 2);
    for (const { name, scopes, workspaces, expiresAt } of keys) {
        t.strictSame([scopes, workspaces, expiresAt], [['inventory:read', 'records:read', 'records:write'], null, null], name);
    }

    const [, said = ''] = /Keys that exist keep what they could do: (.*?)\. A new key/s.exec(readFileSync('UPGRADING.md', 'utf8')) ?? [];
    t.strictSame(said.match(/[a-z]+:[a-z]+/g), keys[0]?.scopes, 'as UPGRADING.md says');
});

t.test('for a day, where URLs are not sealed, there may be processes that keep no session', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    t.after(() => pool.end());
    const { deliveries } = postgresWebhooks({ pool });
    const upTo = migrations.findIndex(({ id }) => id === '0059-sessionless');
    await migrate(pool, { steps: migrations.slice(0, upTo) });
    await pool.query(`insert into scanwire.exporters
            (id, name, url, collector, type, legacy, trust, signatures, header_names, state, consecutive_failures, sealed_secret, created_at, updated_at)
        values (gen_random_uuid(), '', 'https://hooks.example.com/', 'default', 'investigation', false, 'strict', '[]', '[]', 'stopped', 0, '', now(), now())`);
    await migrate(pool);
    t.match(await deliveries.sessions(), [{ opensUrls: false }]);
    await pool.query(
        `create or replace function scanwire.now() returns timestamptz language sql volatile as $$ select now() + interval '1 day 1 s' $$`,
    );
    t.same(await deliveries.sessions(), []);
});

t.test('deletions are known from a time on at which all are written down', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    t.after(() => pool.end());
    const upTo = migrations.findIndex(({ id }) => id === '0068-tombstones');
    await migrate(pool, { steps: migrations.slice(0, upTo) });
    await pool.query(`insert into scanwire.workspaces (name, created_at, updated_at) values ('gone', now(), now())`);
    const deleting = await pool.connect();
    await deleting.query('begin');
    await deleting.query(`delete from scanwire.workspaces where name = 'gone'`);
    const migrating = migrate(pool);
    await until(async () => {
        const { rows } = await pool.query(
            'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted',
        );
        return rows.length > 0;
    });
    const { rows: before } = await pool.query<{ at: Date }>('select clock_timestamp() as at');
    await deleting.query('commit');
    deleting.release();
    await migrating;
    const { rows: known } = await pool.query<{ at: Date }>('select begun_at as at from scanwire.tombstone_keeping');
    const { rows: told } = await pool.query('select from scanwire.tombstones');
    t.equal(told.length, 0);
    t.ok(present(known[0]).at >= present(before[0]).at);
});

t.test('two processes that start together migrate an empty database once', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const outputs = await Promise.all([migrateElsewhere(url), migrateElsewhere(url), migrateElsewhere(url)]);
    t.same(
        outputs.flatMap((output) => JSON.parse(output)).sort(),
        migrations.map(({ id }) => id),
    );

    const pool = new pg.Pool({ connectionString: url });
    const { rows } = await pool.query('select id from scanwire.migration order by id');
    await pool.end();
    t.same(
        rows,
        migrations.map(({ id }) => ({ id })),
    );
});

t.test('migrate under a role that may not make schemas, where the schema was made for it', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const admin = new pg.Pool({ connectionString: url });
    const role = `scanwire_${Math.random().toString(36).slice(2)}`;
    await admin.query(`create role ${role} login; create schema scanwire authorization ${role}`);
    const pool = new pg.Pool({ connectionString: url, onConnect: (client) => client.query(`set role ${role}`) });
    t.same(
        await migrate(pool),
        migrations.map(({ id }) => id),
    );
    await pool.end();
    await admin.query(`drop owned by ${role} cascade; drop role ${role}`);
    await admin.end();
});

t.test('the files for another migration tool do what migrate does, and tell it so', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    t.after(() => pool.end());
    for (const { sql, transaction } of migrationFiles()) {
        t.equal(transaction, !/^-- Must not run in a transaction/.test(sql));
        for (const statement of transaction ? [`begin; ${sql}; commit`] : sql.split(/(?<=;)\n/)) {
            await pool.query(statement);
        }
    }
    t.same(await migrate(pool), []);
    t.same(
        migrationFiles().map(({ name }) => name),
        migrations.map(({ id }) => `${id}.sql`),
    );
});

async function migrateElsewhere(url: string): Promise<string> {
    const script = fileURLToPath(new URL('./migrate-child.js', import.meta.url));
    const child = spawn(process.execPath, [script, url], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (text) => {
        output += text;
    });
    await once(child, 'close');
    return output;
}
