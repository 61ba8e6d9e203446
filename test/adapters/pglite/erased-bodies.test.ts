import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { sampleEvent, sampleExporter } from '../../../adapters/contract/webhooks/fixture.ts';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, postgresWebhooks } from '../../../adapters/postgres/index.ts';

t.test('leaves nothing of an erased body, nor of what was made of it and answered to it, in a copy of the database', async (t) => {
    const database = await openEmbeddedDatabase({ folder: `${t.testdir()}/data` });
    t.teardown(() => database.end());
    await migrate(database);
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
    for (const time of ['once', 'and again']) {
        const files = await copy();
        t.notOk(files.includes('a secret that was erased'), time);
        t.notOk(files.includes('Answer 0 to it'), time);
        t.ok(files.includes('Answer 1 to it'), time);
        t.ok(files.includes('Slack: a body that was kept'), time);
    }
});

t.test('gives no copy that may hold a body which was erased while it was made', async (t) => {
    const database = await openEmbeddedDatabase({ folder: `${t.testdir()}/data` });
    t.teardown(() => database.end());
    await migrate(database);
    const { deliveries } = postgresWebhooks({ pool: database });
    const event = sampleEvent({ body: JSON.stringify({ title: 'a secret that was erased' }) });
    await deliveries.accept([{ event, recipients: { types: [], subscribers: [] } }]);
    const copy = async (): Promise<void> => {
        let chunks = 0;
        for await (const _ of database.dump()) {
            chunks += 1;
            if (chunks === 10) {
                await deliveries.erase(event.id);
            }
        }
    };
    await t.rejects(copy(), { code: 'CONFLICT', message: /^A body was erased while the embedded database was copied/ });
    t.notOk((await buffer(database.dump())).includes('a secret that was erased'), 'the next one has nothing of it');
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
