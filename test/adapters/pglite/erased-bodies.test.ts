import { mkdirSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { sampleEvent, sampleExporter } from '../../../adapters/contract/webhooks/fixture.ts';
import { leaveNoErasedBodies } from '../../../adapters/pglite/erased-bodies.ts';
import { type EmbeddedDatabase, openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { migrations } from '../../../adapters/postgres/migrations/index.ts';
import { unpackTar } from '../../../lib/tar.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { usedDataOf } from '../../support/served.ts';

t.test('leaves nothing of an erased body, nor of what was made of it and answered to it, in a copy of the database', async (t) => {
    const { database } = await migrated(t);
    const { exporters, deliveries, settings } = postgresWebhooks({ pool: database });
    await settings.read();
    const exporter = sampleExporter({ format: 'slack' });
    await exporters.insert(exporter);

    const [erased, kept] = ['a secret that was erased', 'a body that was kept'].map((title) => {
        const event = sampleEvent({ body: JSON.stringify({ title }) });
        const message = { contentType: 'application/json', headers: [], body: JSON.stringify({ text: `Slack: ${title}` }), failure: null };
        return { event, recipients: { types: [], subscribers: [{ exporterId: exporter.id, message }] } };
    });
    const accepted = await deliveries.accept([erased, kept].filter((one) => one !== undefined));
    const responses = accepted.map(({ deliveries: [deliveryId = ''] }, index) => {
        return { deliveryId, token: 'token', body: { text: `Answer ${index} to it`, bytes: 14, truncated: false } };
    });
    await deliveries.responses?.keep(responses);
    const copy = async (): Promise<Buffer> => await buffer(database.dump());
    t.ok((await copy()).includes('a secret that was erased'), 'it is there before');
    t.ok((await copy()).includes('Answer 0 to it'), 'the answer too');

    await deliveries.erase(erased?.event.id ?? '');
    let last: Buffer = Buffer.alloc(0);
    for (const time of ['once', 'and again']) {
        const files = await copy();
        last = files;
        t.notOk(files.includes('a secret that was erased'), time);
        t.notOk(files.includes('Answer 0 to it'), time);
        t.ok(files.includes('Answer 1 to it'), time);
        t.ok(files.includes('Slack: a body that was kept'), time);
    }

    const restored = `${t.testdirName}/restored`;
    mkdirSync(restored, { mode: 0o700, recursive: true });
    await unpackTar([last], `${restored}/database`);
    const { database: copied } = await opened(t, restored);
    const { rows } = await copied.query('select from scanwire.events where octet_length(body::text) > 2');
    t.equal(rows.length, 1, 'pages of which something was left out are whole');
});

t.test('leaves nothing of an erased body whose row was removed since', async (t) => {
    const { database, deliveries, publish } = await migrated(t);
    const id = await publish('a secret that was erased');
    t.ok((await buffer(database.dump())).includes('a secret that was erased'), 'it is there before');
    await deliveries.erase(id);
    await database.query('delete from scanwire.events');
    t.notOk((await buffer(database.dump())).includes('a secret that was erased'));
    t.same(await counted(database), ['0'], 'the next copy vacuums nothing');
});

t.test('leaves nothing of an erased body that an analysis has noted', async (t) => {
    const { database, deliveries, publish } = await migrated(t);
    const id = await publish('a secret that was erased');
    await publish('a body that was kept');
    await database.query('analyze scanwire.events');
    const { rows } = await database.query<{ noted: string }>(
        `select histogram_bounds::text as noted from pg_stats where tablename = 'events' and attname = 'body'`,
    );
    t.match(rows[0]?.noted, /a secret that was erased/);
    await deliveries.erase(id);
    const copy = await buffer(database.dump());
    t.notOk(copy.includes('a secret that was erased'));
    t.ok(copy.includes('a body that was kept'));
});

t.test('takes a database that a version before has used for one of which bodies were erased', async (t) => {
    const upTo = migrations.findIndex(({ id }) => id === '0084-erasures-counted');
    const { database, deliveries, publish } = await opened(t);
    await migrate(database, { steps: migrations.slice(0, upTo) });
    for (const [title, act] of [
        ['a secret that was erased', async () => {}],
        ['a secret that was erased before the migration', async () => void (await migrate(database))],
    ] as const) {
        const id = await publish(title);
        await deliveries.erase(id);
        await database.query('delete from scanwire.events');
        await act();
        t.notOk((await buffer(database.dump())).includes(title), title);
    }
    t.same(await counted(database), ['0']);
});

t.test('takes a new database for one of which nothing was erased', async (t) => {
    const { database } = await opened(t);
    await migrate(database);
    t.same(await counted(database), ['0']);
});

for (const [when, isThen] of [
    ['while it was made', (name: string) => name === 'global'],
    ['at its end', (name: string) => name.startsWith('pg_wal/0')],
] as const) {
    t.test(`gives no copy that may hold a body which was erased ${when}`, async (t) => {
        const { database, deliveries, publish } = await migrated(t);
        const id = await publish('a secret that was erased');
        const chunks: Uint8Array[] = [];
        let isErased = false;
        const copy = async (): Promise<void> => {
            for await (const chunk of database.dump()) {
                chunks.push(chunk);
                const name = Buffer.from(chunk.subarray(0, 100)).toString('latin1').replace(/\0.*$/s, '');
                if (!isErased && isThen(name)) {
                    isErased = true;
                    await deliveries.erase(id);
                    await database.query('delete from scanwire.events');
                }
            }
        };
        await t.rejects(copy(), { code: 'CONFLICT', message: /^A body was erased while the embedded database was copied/ });
        t.ok(isErased);
        t.notOk(Buffer.concat(chunks).includes('backup_label\0'), 'it has no end');
        t.notOk((await buffer(database.dump())).includes('a secret that was erased'), 'the next one has nothing of it');
    });
}

t.test('begins no copy when a body was erased while the tables were vacuumed', async (t) => {
    const { database, deliveries, publish } = await migrated(t);
    const ids = [await publish('one secret'), await publish('another secret')] as const;
    await deliveries.erase(ids[0]);
    let isErased = false;
    const erasing: Executor = {
        async query(text, values) {
            const result = await database.query(text, values);
            if (!isErased && text.includes('vacuum ')) {
                isErased = true;
                await deliveries.erase(ids[1]);
            }
            return result as never;
        },
    };
    await t.rejects(leaveNoErasedBodies(erasing), { code: 'CONFLICT' });
    t.equal(await leaveNoErasedBodies(database), '0');
});

t.test('copies a database in which nothing was migrated', async (t) => {
    const database = await openEmbeddedDatabase({ folder: `${t.testdir()}/data` });
    await database.query('drop schema if exists scanwire cascade');
    t.ok((await buffer(database.dump())).length > 0);
    await database.end();
    await t.rejects(
        buffer(database.dump()),
        { code: 'UNAVAILABLE', message: 'The embedded database is closed' },
        'one that is closed is copied no more',
    );
});

async function migrated(t: Test) {
    return await opened(t, await usedDataOf(t));
}

async function opened(t: Test, folder = `${t.testdir()}/data`) {
    const database = await openEmbeddedDatabase({ folder });
    t.teardown(() => database.end());
    const { deliveries } = postgresWebhooks({ pool: database });
    const publish = async (title: string): Promise<string> => {
        const event = sampleEvent({ body: JSON.stringify({ title }) });
        await deliveries.accept([{ event, recipients: { types: [], subscribers: [] } }]);
        return event.id;
    };
    return { database, deliveries, publish };
}

async function counted(database: EmbeddedDatabase): Promise<readonly string[]> {
    const { rows } = await database.query<{ count: string }>('select last_value::text as count from scanwire.erased_bodies');
    return rows.map(({ count }) => count);
}
