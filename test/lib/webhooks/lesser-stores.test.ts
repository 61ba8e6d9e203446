import { randomUUID } from 'node:crypto';
import t from 'tap';
import { memoryWebhooks } from '../../../adapters/memory/index.ts';
import { investigation } from '../../support/investigation.ts';
import { recordingProcess } from '../../support/recording-process.ts';

/*
 * Stores of others may lack what ours can beyond the least that there must be. What can be made of the rest is, and else they say so.
 */

const URL = 'https://receiver.example/hook';

function lesserStores() {
    const { exporters, deliveries, ...others } = memoryWebhooks();
    const { page: _, summaries: __, ...lists } = exporters;
    const { discard: ___, attemptLists: ____, ...lasting } = deliveries;
    return { ...others, exporters: lists, deliveries: lasting };
}

t.test('pages through exporters that a store can only list, without the slices of their day', async (t) => {
    const { exporters } = recordingProcess(t, lesserStores());
    const made = [];
    for (const owner of ['ann', 'bob', 'ann', null, 'ann']) {
        made.push((await exporters.create({ url: URL, owner })).exporter);
    }
    const ids = made.map(({ id }) => id);
    const shown = (rows: readonly { readonly id: string }[]): readonly number[] => rows.map(({ id }) => ids.indexOf(id));

    const first = await exporters.page({ limit: 3 });
    t.strictSame(shown(first), [0, 1, 2]);
    t.match(first[0], { url: 'https://receiver.example/…', day: null, health: { breaker: 'closed', lastOutcome: null } });
    t.strictSame(shown(await exporters.page({ limit: 3, after: ids[2] ?? '' })), [3, 4]);
    t.strictSame(shown(await exporters.page({ owner: 'ann', limit: 2 })), [0, 2]);
    t.strictSame(shown(await exporters.page({ owner: 'ann', limit: 2, after: ids[2] ?? '' })), [4]);

    t.strictSame(shown(await exporters.summaries()), [0, 1, 2, 3, 4]);
    t.strictSame(shown(await exporters.summaries({ owner: 'bob' })), [1]);
    t.strictSame(shown(await exporters.summaries({ ids: [ids[4] ?? '', ids[1] ?? '', randomUUID()], owner: 'ann' })), [4]);
    t.notOk('url' in ((await exporters.summaries())[0] ?? {}), 'no more than a summary');
});

t.test('leaves out of a page what is removed while it is made', async (t) => {
    const stores = lesserStores();
    const { list } = stores.exporters;
    const listedBefore = async () => {
        const listed = await list();
        await stores.exporters.remove(listed[0]?.id ?? '');
        return listed;
    };
    const { exporters } = recordingProcess(t, stores);
    const { exporter } = await exporters.create({ url: URL, name: 'removed' });
    await exporters.create({ url: URL, name: 'stays' });
    Object.assign(stores.exporters, { list: listedBefore });
    t.match(await exporters.page({}), [{ name: 'stays' }]);
    t.equal(await stores.exporters.get(exporter.id), null);
});

t.test('says that a store discards nothing', async (t) => {
    const { exporters, deliveries, publish } = recordingProcess(t, lesserStores());
    const { exporter } = await exporters.create({ url: URL });
    await exporters.start(exporter.id, { wait: false });
    const [id = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    t.equal(deliveries.discards, false);
    await t.rejects(deliveries.discard(id), { code: 'MISCONFIGURED', message: 'Cannot discard a delivery: the store does not' });
});

t.test('says that a store lists no attempts', async (t) => {
    const { deliveries } = recordingProcess(t, lesserStores());
    const refusal = { code: 'MISCONFIGURED', message: 'Cannot list attempts: the store does not' };
    await t.rejects(deliveries.attempts.list(), refusal);
    await t.rejects(deliveries.attempts.count(), refusal);
});

t.test('refuses to list attempts of several exporters by a store that would list those of all', async (t) => {
    const stores = memoryWebhooks();
    const { filtersByExporters: _, ...lasting } = stores.deliveries;
    const { deliveries } = recordingProcess(t, { ...stores, deliveries: lasting });
    const refusal = {
        code: 'MISCONFIGURED',
        message: 'Cannot look for the attempts of several exporters: the store does not',
        field: 'exporterIds',
    };
    await t.rejects(deliveries.attempts.list({ exporterIds: [randomUUID()] }), refusal);
    await t.rejects(deliveries.attempts.count({ exporterIds: [] }), refusal);
    t.strictSame(await deliveries.attempts.list({ exporterId: randomUUID() }), []);
});
