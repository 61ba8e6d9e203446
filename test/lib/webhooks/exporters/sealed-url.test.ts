import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mock } from 'node:test';
import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import { type KeyRing, keyRing } from '../../../../lib/keys/key-ring.ts';
import { knownUrl, sealedUrl, shownUrl, shownUrls, unsealUrl } from '../../../../lib/webhooks/exporters/sealed-url.ts';
import type { WebhookStores } from '../../../../lib/webhooks/options.ts';
import { recordingProcess, ring } from '../../../support/recording-process.ts';

const WHOLE = 'https://receiver.example:8443/hook/t0ken?key=t0ken';
const SHOWN = 'https://receiver.example:8443/…';
const PLAIN = randomUUID();

/** A process of the version before, which says nothing of URLs, is alive for so many milliseconds. */
async function olderSession(stores: WebhookStores, duration = 1_000_000): Promise<string> {
    const id = randomUUID();
    await stores.deliveries.keepAlive({ id, process: 'older', slots: {} }, duration);
    return id;
}

async function storedUrl(stores: WebhookStores, id: string): Promise<string> {
    return (await stores.exporters.get(id))?.url ?? '';
}

t.test('shows scheme, host and port of a URL', async (t) => {
    t.equal(shownUrl('https://u:p@example.com:8443/s3cr3t?token=s3cr3t#s3cr3t'), 'https://example.com:8443/…');
    t.equal(shownUrl('https://example.com/?s3cr3t'), 'https://example.com/…');
    t.equal(shownUrl('https://example.com'), 'https://example.com/');
    t.equal(shownUrl('nonsense'), 'unreadable URL');
    t.equal(shownUrl(null), 'unreadable URL');
});

t.test('opens the URLs of a list once, and those that have changed', async (t) => {
    const sealing = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const other = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const opened: string[] = [];
    const shown = shownUrls({
        ...sealing,
        open(sealed, context) {
            opened.push(context);
            return sealing.open(sealed, context);
        },
    });
    const of = (id: string, url: string, by: KeyRing = sealing) => ({ id, url: by.seal(url, `exporter:${id}:url`) });
    const [first, second] = [of('1', WHOLE), of('2', 'https://example.com')];
    const broken = of('3', WHOLE, other);
    const all = [first, second, broken, { id: '4', url: WHOLE }];
    const expected = [SHOWN, 'https://example.com/', 'unreadable URL', SHOWN];
    t.strictSame(shown(all), expected);
    t.strictSame(shown(all), expected);
    t.strictSame(
        opened.splice(0),
        ['exporter:1:url', 'exporter:2:url', 'exporter:3:url', 'exporter:3:url'],
        'what cannot be opened now may be later',
    );
    t.strictSame(shown([of('1', 'https://example.com/new'), { ...second, id: '5' }]), ['https://example.com/…', 'unreadable URL']);
    t.strictSame(opened.splice(0), ['exporter:1:url', 'exporter:5:url'], 'what was sealed for another is no shorter way');
    shown([]);
    shown([second]);
    t.strictSame(opened, ['exporter:2:url'], 'what is gone is forgotten');
});

t.test('stores a URL sealed, and shows it whole only where that is asked for', async (t) => {
    const stores = memoryWebhooks();
    const { exporters } = recordingProcess(t, stores);
    const { exporter, warnings } = await exporters.create({ url: WHOLE });
    t.equal(exporter.url, SHOWN);
    t.same(warnings, []);
    t.notMatch(await storedUrl(stores, exporter.id), /t0ken|receiver/);
    t.match(
        [await exporters.get(exporter.id), await exporters.show(exporter.id), ...(await exporters.list())],
        Array(3).fill({ url: SHOWN }),
    );
    t.equal((await exporters.show(exporter.id, { showUrl: true })).url, WHOLE);
    t.equal((await exporters.show(exporter.id, { showUrl: false })).url, SHOWN);

    const moved = await exporters.update(exporter.id, { url: `${WHOLE}&more` });
    t.equal(moved.exporter.url, SHOWN);
    t.equal((await exporters.show(exporter.id, { showUrl: true })).url, `${WHOLE}&more`);
});

t.test('sends to the whole URL, of a version before as well', async (t) => {
    const stores = memoryWebhooks();
    const { exporters, sent, start, work } = recordingProcess(t, stores);
    await start();
    await work(['default']);
    const { exporter } = await exporters.create({ url: WHOLE });
    await stores.exporters.insert(sampleExporter({ id: PLAIN, url: `${WHOLE}&plain`, sealedSecret: ring.seal('s', `exporter:${PLAIN}`) }));
    await exporters.test(exporter.id);
    await exporters.test(PLAIN);
    t.same(
        sent.map(({ url }) => url),
        [WHOLE, `${WHOLE}&plain`],
    );
});

t.test('finds the same URL in another exporter, sealed or not', async (t) => {
    const stores = memoryWebhooks();
    const { exporters } = recordingProcess(t, stores);
    const { exporter } = await exporters.create({ url: WHOLE });
    const second = await exporters.create({ url: WHOLE });
    t.match(second.warnings, [{ code: 'same_url', message: new RegExp(exporter.id) }]);
    await exporters.remove(exporter.id);
    await exporters.remove(second.exporter.id);
    await stores.exporters.insert(sampleExporter({ id: PLAIN, url: WHOLE }));
    t.match((await exporters.create({ url: WHOLE })).warnings, [{ code: 'same_url', message: new RegExp(PLAIN) }]);
    t.same((await exporters.create({ url: `${WHOLE}&other` })).warnings, []);
});

t.test('knows the origin that headers were given for', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks());
    const { exporter } = await exporters.create({ url: WHOLE, headers: [['X-Key', 'k']] });
    await t.rejects(exporters.update(exporter.id, { url: 'https://receiver.example/' }), { code: 'INVALID_INPUT', field: 'headers' });
    await t.resolves(exporters.update(exporter.id, { url: 'https://receiver.example:8443/other' }));
});

t.test('binds a URL to its exporter, and says so where it cannot be opened', async (t) => {
    const stores = memoryWebhooks();
    const { exporters } = recordingProcess(t, stores);
    const { exporter } = await exporters.create({ url: WHOLE });
    const url = await storedUrl(stores, exporter.id);
    t.throws(() => unsealUrl({ id: 'other', url }, ring), { code: 'UNSEALABLE' });
    t.equal(knownUrl({ id: 'other', url }, ring), null);
    t.throws(() => knownUrl({ id: 'other', url }, { ...ring, open: () => assert.fail('of the ring') }), { message: 'of the ring' });

    await stores.exporters.insert(sampleExporter({ id: PLAIN, url, createdAt: new Date(Date.now() + 9) }));
    t.match((await exporters.list())[1], { id: PLAIN, url: 'unreadable URL' });
    await t.rejects(exporters.show(PLAIN, { showUrl: true }), { code: 'UNSEALABLE' });
    await t.resolves(exporters.update(PLAIN, { url: WHOLE }));
    t.equal((await exporters.show(PLAIN, { showUrl: true })).url, WHOLE);
});

t.test('seals at the start what a version before has stored, and with the current key what a former one has', async (t) => {
    const stores = memoryWebhooks();
    const keys = { one: randomBytes(32), two: randomBytes(32) };
    const [former, rotated] = [keyRing({ current: 'one', keys }), keyRing({ current: 'two', keys })];
    await stores.exporters.insert(sampleExporter({ id: PLAIN, url: WHOLE, sealedSecret: former.seal('s', `exporter:${PLAIN}`) }));
    await recordingProcess(t, stores, { keyRing: former }).start();
    t.match(await storedUrl(stores, PLAIN), /^v1\.one\./);

    await recordingProcess(t, stores, { keyRing: rotated }).start();
    const sealed = await storedUrl(stores, PLAIN);
    t.match(sealed, /^v1\.two\./);
    const again = recordingProcess(t, stores, { keyRing: rotated });
    await again.start();
    t.equal(await storedUrl(stores, PLAIN), sealed, 'once');
    t.equal((await again.exporters.show(PLAIN, { showUrl: true })).url, WHOLE);
});

t.test('goes on behind a URL that cannot be opened, and tells of it once', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] });
    t.teardown(() => mock.timers.reset());
    const stores = memoryWebhooks();
    const keys = { one: randomBytes(32), two: randomBytes(32) };
    const former = keyRing({ current: 'one', keys });
    for (const id of ['altered', 'later', 'last']) {
        const url = former.seal(WHOLE, `exporter:${id === 'altered' ? 'another' : id}:url`);
        await stores.exporters.insert(sampleExporter({ id, url, sealedSecret: former.seal('s', `exporter:${id}`) }));
    }
    const altered = await storedUrl(stores, 'altered');
    const { start, errors } = recordingProcess(t, stores, { keyRing: keyRing({ current: 'two', keys }) });
    await start();
    for (const id of ['later', 'last']) {
        t.match(await storedUrl(stores, id), /^v1\.two\./, id);
    }
    t.equal(await storedUrl(stores, 'altered'), altered);
    t.match(errors, [{ code: 'UNSEALABLE', message: /^Cannot seal the URL of exporter altered: Cannot open/ }]);
    mock.timers.tick(15_000);
    await start();
    t.equal(errors.length, 2, 'once for each start');
});

t.test('leaves alone what a key ring of another form has sealed', async (t) => {
    const stores = memoryWebhooks();
    const own: KeyRing = { current: 'x', ids: new Set(['x']), seal: (text) => btoa(text), open: (text) => atob(text) };
    const { exporters, start, errors } = recordingProcess(t, stores, { keyRing: own });
    const { exporter } = await exporters.create({ url: WHOLE });
    const sealed = await storedUrl(stores, exporter.id);
    await start();
    t.equal(await storedUrl(stores, exporter.id), sealed);
    t.equal((await exporters.show(exporter.id, { showUrl: true })).url, WHOLE);
    t.same(errors, []);
});

t.test('leaves a URL as it is while a process of the version before sends, and seals it afterwards', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] });
    t.teardown(() => mock.timers.reset());
    const stores = memoryWebhooks();
    const older = await olderSession(stores);
    await stores.exporters.insert(sampleExporter({ id: PLAIN, url: WHOLE, sealedSecret: ring.seal('s', `exporter:${PLAIN}`) }));
    const { exporters, start, errors } = recordingProcess(t, stores);
    await start();
    const { exporter } = await exporters.create({ url: `${WHOLE}&new` });
    await exporters.update(PLAIN, { url: `${WHOLE}&changed` });
    t.same([await storedUrl(stores, PLAIN), await storedUrl(stores, exporter.id)], [`${WHOLE}&changed`, `${WHOLE}&new`]);
    t.equal(exporter.url, SHOWN, 'nobody is shown it all the same');

    mock.timers.tick(15_000);
    t.equal(await storedUrl(stores, PLAIN), `${WHOLE}&changed`);
    await stores.deliveries.endSessions([older]);
    mock.timers.tick(15_000);
    await until(async () => (await stores.exporters.list()).every((one) => sealedUrl(one).length === 1));
    t.equal((await exporters.show(PLAIN, { showUrl: true })).url, `${WHOLE}&changed`);
    t.equal((await exporters.show(exporter.id, { showUrl: true })).url, `${WHOLE}&new`);
    t.same(errors, []);
});

t.test('seals no URL over one that is changed meanwhile, nor fails for one that is removed', async (t) => {
    const stores = memoryWebhooks();
    for (const id of ['changed', 'removed', 'third']) {
        await stores.exporters.insert(sampleExporter({ id, url: WHOLE, sealedSecret: ring.seal('s', `exporter:${id}`) }));
    }
    let looks = 0;
    const list = async () => {
        const listed = await stores.exporters.list();
        looks += 1;
        // The first look is that of the check of the key ring.
        if (looks === 2) {
            await stores.exporters.update('changed', { url: `${WHOLE}&changed` });
            await stores.exporters.remove('removed');
        }
        return listed;
    };
    const { start, errors } = recordingProcess(t, { ...stores, exporters: { ...stores.exporters, list } });
    await start();
    t.equal(await storedUrl(stores, 'changed'), `${WHOLE}&changed`);
    t.match(await storedUrl(stores, 'third'), /^v1\.k\./);
    t.same(errors, []);
});

t.test('says that the store is away, and seals later', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] });
    t.teardown(() => mock.timers.reset());
    const stores = memoryWebhooks();
    await stores.exporters.insert(sampleExporter({ id: PLAIN, url: WHOLE, sealedSecret: ring.seal('s', `exporter:${PLAIN}`) }));
    let isAway = true;
    const update: typeof stores.exporters.update = async (...change) =>
        isAway ? Promise.reject(new ScanwireError('UNAVAILABLE', 'away')) : await stores.exporters.update(...change);
    const { start, errors } = recordingProcess(t, { ...stores, exporters: { ...stores.exporters, update } });
    await start();
    t.match(errors, [{ code: 'UNAVAILABLE', message: 'away' }]);
    t.equal(await storedUrl(stores, PLAIN), WHOLE);
    isAway = false;
    mock.timers.tick(15_000);
    await until(async () => (await storedUrl(stores, PLAIN)) !== WHOLE);
    t.equal(errors.length, 1);
});
