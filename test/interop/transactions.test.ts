import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial, text } from 'drizzle-orm/pg-core';
import knex from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { migrate, postgresWebhooks, transaction } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { Publish } from '../../lib/webhooks/events/publisher.ts';
import type { Exporters } from '../../lib/webhooks/exporters/exporter-operations.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { testDatabase } from '../support/test-database.ts';

const FOLDER = 'build/docs-transactions';

const investigation = {
    timestamp: '2026-11-21T09:30:00Z',
    title: 'Suspicious "sign-in" at $1 and ?',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [] },
};

const RUN_ALL = `update scanwire.exporters set state = 'running'`;

const findings = pgTable('findings', { id: serial().primaryKey(), title: text().notNull() });

/** What an example of the docs stands in. */
interface Surroundings {
    readonly pool: pg.Pool;
    readonly knex: ReturnType<typeof knex>;
    readonly kysely: Kysely<{ readonly findings: { readonly title: string } }>;
    readonly drizzle: ReturnType<typeof drizzle>;
    readonly postgres: ReturnType<typeof postgres>;
    readonly findings: typeof findings;
    readonly investigation: typeof investigation;
    readonly publish: Publish;
    readonly exporters: Exporters;
    /** How many commits were heard. */
    heard(): number;
}

type Example = (surroundings: Surroundings) => Promise<void>;

/** The examples of the docs as functions, their imports outside. */
async function examplesOf(page: string, heading: string): Promise<ReadonlyMap<string, Example>> {
    const section = readFileSync(page, 'utf8')
        .split(/^## /m)
        .find((one) => one.startsWith(heading)) as string;
    const examples = [...section.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
    mkdirSync(FOLDER, { recursive: true });
    const named = examples.map(async (code) => {
        const name = /await (transaction(?=\()|(?:pool|knex|kysely|drizzle|postgres)(?=\.))/.exec(code)?.[1] as string;
        const lines = code.split('\n');
        const isImport = (line: string): boolean => line.startsWith('import ');
        const parameters = 'pool, knex, kysely, drizzle, postgres, findings, investigation, publish';
        const body = lines.filter((line) => !isImport(line)).join('\n');
        const file = join(FOLDER, `${name}.mjs`);
        writeFileSync(file, `${lines.filter(isImport).join('\n')}\nexport default async ({ ${parameters} }) => {\n${body}};\n`);
        const { default: example } = (await import(pathToFileURL(file).href)) as { default: Example };
        return [name, example] as const;
    });
    return new Map(await Promise.all(named));
}

async function surroundings(t: Test): Promise<Surroundings> {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => undefined);
    const others = { knex: knex({ client: 'pg', connection: url }), postgres: postgres(url, { max: 2 }) };
    await migrate(pool);
    await pool.query('create table findings (id serial primary key, title text not null)');
    const guard = egressGuard({ allow: [] });
    const stores = postgresWebhooks({ pool });
    let commits = 0;
    const hear = (): void => {
        commits += 1;
    };
    const listening = present(stores.deliveries.listen?.(hear, t.error));
    await listening.ready;
    const { publish, exporters, close } = webhooks({
        ...stores,
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
    });
    await exporters.create({ url: 'https://receiver.example/hook' });
    await pool.query(RUN_ALL);
    t.teardown(async () => {
        await Promise.all([close(), listening.close(), others.knex.destroy(), others.postgres.end()]);
        await pool.end();
        await drop();
    });
    const kysely: Surroundings['kysely'] = new Kysely({ dialect: new PostgresDialect({ pool }) });
    return { pool, ...others, kysely, drizzle: drizzle(pool), findings, investigation, publish, exporters, heard: () => commits };
}

/** How many rows the host, the events and the deliveries have. */
async function counts(pool: pg.Pool): Promise<unknown> {
    const { rows } = await pool.query(`select
        (select count(*)::integer from findings) as findings,
        (select count(*)::integer from scanwire.events) as events,
        (select count(*)::integer from scanwire.deliveries) as deliveries`);
    return rows[0];
}

t.test('the examples of the docs publish in a transaction of', async (t) => {
    const examples = await examplesOf('docs/webhook-exporter.md', "In the host's own transaction");
    t.same([...examples.keys()], ['transaction', 'pool', 'knex', 'kysely', 'drizzle', 'postgres']);
    const around = await surroundings(t);
    const { pool, publish } = around;

    for (const [name, example] of examples) {
        t.test(name, async (t) => {
            await pool.query('truncate findings, scanwire.events, scanwire.deliveries');
            const published: unknown[] = [];
            const failing: Publish = async (...args) => {
                published.push(await publish(...args));
                throw new Error('The host changed its mind');
            };
            await t.rejects(example({ ...around, publish: failing }), { message: 'The host changed its mind' });
            t.match(published, [{ eventId: String, deliveries: [String] }], 'the event was accepted');
            t.same(await counts(pool), { findings: 0, events: 0, deliveries: 0 }, 'rollback leaves nothing');

            const before = around.heard();
            await example(around);
            await until(() => around.heard() > before);
            t.same(await counts(pool), { findings: 1, events: 1, deliveries: 1 }, 'commit leaves the event');
            const { rows } = await pool.query('select body from scanwire.events');
            t.match(JSON.parse(rows[0].body), { title: investigation.title });
        });
    }
});

t.test(
    'the executors of the docs take an event with a key, and for exporters that chose it, some with a message of their own',
    async (t) => {
        const examples = await examplesOf('docs/webhook-exporter.md', "In the host's own transaction");
        const around = await surroundings(t);
        const { pool, publish, exporters } = around;
        await exporters.create({ url: 'https://chooser.example/', kinds: ['idr_*'] });
        await exporters.create({
            url: 'https://chat.example/',
            kinds: ['idr_*'],
            format: 'template',
            template: { text: '{{ body.title }}' },
        });
        await pool.query(RUN_ALL);

        for (const [name, example] of examples) {
            t.test(name, async (t) => {
                await pool.query('truncate findings, scanwire.events, scanwire.deliveries cascade');
                const accepted: string[] = [];
                const keyed: Publish = async (kind, body, options) => {
                    const { eventId } = await publish(kind, body, { ...options, idempotencyKey: `${name}: "{1,2}"` });
                    accepted.push(eventId);
                    return await publish(kind, body, options);
                };
                await example({ ...around, publish: keyed });
                t.same(await counts(pool), { findings: 1, events: 2, deliveries: 6 });
                const { rows } = await pool.query(
                    `select
                (select array_agg(event_id::text) from scanwire.idempotency_keys where key like $1 || ':%') as keyed,
                (select array_agg(distinct body) from scanwire.delivery_messages) as bodies`,
                    [name],
                );
                t.same(rows, [{ keyed: accepted, bodies: [JSON.stringify({ text: investigation.title })] }]);
            });
        }
    },
);

t.test('publishes in a serializable transaction while exporters change', async (t) => {
    const { pool, publish } = await surroundings(t);
    const client = await pool.connect();
    await client.query('begin isolation level serializable');
    await client.query('select * from findings');
    await pool.query('update scanwire.exporters set consecutive_failures = consecutive_failures + 1');
    await client.query(`insert into findings (title) values ('x')`);
    const { deliveries } = await publish('idr_investigation_created', investigation, { tx: client });
    t.equal(deliveries.length, 1);
    await client.query('commit');
    client.release();
    t.same(await counts(pool), { findings: 1, events: 1, deliveries: 1 });
});

t.test('tells a host whose transaction must be run again so, in the words of the database', async (t) => {
    const { pool, publish } = await surroundings(t);
    const client = await pool.connect();
    await client.query('begin isolation level serializable');
    await client.query('select * from findings');
    await pool.query('delete from scanwire.exporters');
    const refused = publish('idr_investigation_created', investigation, { tx: client });
    await t.rejects(refused, { code: '40001' });
    await client.query('rollback');
    client.release();
    t.same(await counts(pool), { findings: 0, events: 0, deliveries: 0 });
});

t.test('tells so too where only who wants the event was asked', async (t) => {
    const { pool, publish } = await surroundings(t);
    await pool.query(`
        create function conflicts() returns boolean language plpgsql as $$ begin raise exception sqlstate '40001'; end $$;
        alter table scanwire.subscriptions rename to subscriptions_behind;
        create view scanwire.subscriptions as select * from scanwire.subscriptions_behind where conflicts()`);
    const refused = transaction(pool, (client) => publish('idr_investigation_created', investigation, { tx: client }));
    await t.rejects(refused, { code: '40001' });
});

t.test("says that an event is gone with what the host's query builder was refused, where the host has caught that", async (t) => {
    const { pool, publish } = await surroundings(t);
    const caught = transaction(pool, async (client) => {
        const built = drizzle({ client: client as unknown as pg.PoolClient });
        await publish('idr_investigation_created', investigation, { tx: client });
        await built.insert(findings).values({ title: 'x' });
        await built.execute(sql`insert into findings values (null, null)`).catch(() => {});
    });
    await t.rejects(caught, { code: 'MISCONFIGURED', message: /was rolled back, since one of its statements had failed \(23502\)/ });
    t.same(await counts(pool), { findings: 0, events: 0, deliveries: 0 });
});

t.test('refuses what is no transaction', async (t) => {
    const { pool, knex, kysely, drizzle, postgres, publish } = await surroundings(t);
    const refusal = (why: string) => ({
        code: 'MISCONFIGURED',
        field: 'tx',
        message: `tx must be an open transaction of the application: ${why}`,
    });
    await t.rejects(publish('idr_investigation_created', investigation, { tx: pool }), refusal('a pool is no transaction'));
    for (const tx of [knex, kysely, drizzle, postgres, null, {}]) {
        await t.rejects(publish('idr_investigation_created', investigation, { tx: tx as never }), refusal('it has no query(text, values)'));
    }
    t.same(await counts(pool), { findings: 0, events: 0, deliveries: 0 });
});
