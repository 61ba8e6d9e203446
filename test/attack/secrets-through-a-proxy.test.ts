import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import type { Exporters } from '../../lib/webhooks/exporters/exporter-operations.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { authority } from '../support/certificates.ts';
import { recordingProcess } from '../support/recording-process.ts';

/*
 * Whoever may change an exporter but not read what it sends leads it through a proxy of theirs: at once, in two steps, or both at the same time.
 */

const ROOT = await authority('Root');
const OTHER_ROOT = await authority('Another root');
const HTTPS = 'https://receiver.example/hook';
const HTTP = 'http://receiver.example/hook';
const HEADERS = [['X-Token', 'hidden']] as const;
const BASIC = { username: 'siem', password: 'hidden' };
const PROXY = { url: 'http://proxy.example:3128' };
const OTHER = { url: 'http://other.example:3128' };
const refusal = (field: string, asOwner = true) => ({
    code: 'INVALID_INPUT',
    field,
    message: asOwner
        ? /^\w+ must be given again, for only the operator may keep it: the proxy could read what it could not read until now$/
        : /^\w+ must be given again, or keepHeaders be true: the proxy could read what it could not read until now$/,
});

interface Changing {
    readonly exporters: Exporters;
    readonly id: string;
    change(changes: ExporterChanges, asOwner?: boolean): Promise<unknown>;
}

/** An exporter of an owner, which sends what is hidden. */
async function changing(t: Test, settings: NewExporterSettings, stores = memoryWebhooks()): Promise<Changing> {
    const { exporters } = recordingProcess(t, stores);
    const { id } = (await exporters.create({ owner: 'ann', headers: HEADERS, basic: BASIC, ...settings })).exporter;
    return { exporters, id, change: (changes, asOwner = true) => exporters.update(id, changes, { asOwner, wait: false }) };
}

/** A proxy, and all that comes to it and through it. */
async function listeningProxy(t: Test): Promise<{ readonly url: string; readonly heard: () => string }> {
    let heard = '';
    const server = createServer().on('connect', ({ url = '' }, socket) => {
        const [host, port] = url.split(':');
        const onward = connect(Number(port), host);
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.on('data', (data: Buffer) => {
            heard += data.toString('latin1');
        });
        socket.on('error', () => onward.destroy()).pipe(onward);
        onward.on('error', () => socket.destroy()).pipe(socket);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => server.close().closeAllConnections());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard: () => heard };
}

t.test('sends nothing hidden through the proxy of who changes an exporter unasked', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const { exporters, start, work } = recordingProcess(t, memoryWebhooks(), { guard, sender: httpSender({ guard }) });
    await start();
    await work(['default']);
    let came = 0;
    const receiver = createServer((request, response) => {
        came += 1;
        request.resume().on('end', () => response.writeHead(204).end());
    });
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => receiver.close().closeAllConnections());
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const { id } = (await exporters.create({ url, owner: 'ann', headers: HEADERS, basic: BASIC })).exporter;
    const proxy = await listeningProxy(t);
    await t.rejects(exporters.update(id, { proxy: { url: proxy.url } }, { asOwner: true }), refusal('headers'));
    await exporters.test(id);
    await until(() => came === 1);
    t.equal(proxy.heard(), '');
    await exporters.update(id, { proxy: { url: proxy.url }, headers: [], basic: null }, { asOwner: true });
    await until(() => came === 2);
    t.match(proxy.heard(), /^POST/, 'what is left goes there');
    t.notMatch(proxy.heard(), /x-token|hidden|authorization/i);
});

t.test('takes nothing to another proxy in plain http unasked', async (t) => {
    for (const asOwner of [true, false]) {
        const { exporters, id, change } = await changing(t, { url: HTTP });
        await t.rejects(change({ proxy: PROXY }, asOwner), refusal('headers', asOwner));
        await t.rejects(change({ proxy: PROXY, headers: [['X-Token', null]] }, asOwner), refusal('headers', asOwner));
        await t.rejects(change({ proxy: PROXY, headers: HEADERS }, asOwner), refusal('basic', asOwner));
        t.match(await exporters.get(id), { authentication: ['basic'] });
        await change({ proxy: PROXY, headers: HEADERS, basic: BASIC }, asOwner);
        await change({ proxy: { url: PROXY.url.replace('//', '//user:password@') } }, asOwner);
        await change({ url: `${HTTP}/other` }, asOwner);
        await t.rejects(change({ proxy: OTHER }, asOwner), refusal('headers', asOwner), 'nor from one to the next');
        await change({ proxy: OTHER, keepHeaders: true }, false);
        await change({ proxy: null }, asOwner);
        await t.rejects(change({ proxy: OTHER }, asOwner), refusal('headers', asOwner), 'nor to one that was there before');
    }
});

t.test('takes the secret of a format and credentials nowhere either, and minds nothing where there is none', async (t) => {
    const formatSecret = 'a'.repeat(32);
    const { change } = await changing(t, { url: HTTP, headers: [], format: 'pagerduty', formatSecret });
    await t.rejects(change({ proxy: PROXY }), refusal('formatSecret'));
    await t.rejects(change({ proxy: PROXY, formatSecret }), refusal('basic'));
    await change({ proxy: PROXY, formatSecret, basic: null });
    await change({ format: 'native' });
    await change({ proxy: OTHER });
});

t.test('lets a proxy read nothing of https unasked, by whatever steps', async (t) => {
    const ca = ROOT.cert;
    for (const loosened of [{ trust: 'self-signed' }, { ca }] as const) {
        const [loose] = Object.keys(loosened);
        const { change } = await changing(t, { url: HTTPS });
        await t.rejects(change({ proxy: PROXY, ...loosened }), refusal('headers'), `${loose} at once`);
        await change(loosened);
        await t.rejects(change({ proxy: PROXY }), refusal('headers'), `${loose} first`);
        await change({ trust: 'strict', ca: null });
        await change({ proxy: PROXY });
        await t.rejects(change(loosened), refusal('headers'), `${loose} last`);
        await t.rejects(change({ ...loosened, keepHeaders: true }), refusal('headers'));
        await change({ ...loosened, keepHeaders: true }, false);
        await change({ name: 'same', ...loosened });
        await change({ trust: 'strict', ca: null });
        await t.rejects(change(loosened), refusal('headers'));
    }

    const { change } = await changing(t, { url: HTTPS, ca, proxy: PROXY });
    await t.rejects(change({ ca: OTHER_ROOT.cert }), refusal('headers'), 'another authority than the one before');
    await t.rejects(change({ trust: 'self-signed' }), refusal('headers'));
    await change({ trust: 'self-signed', keepHeaders: true }, false);
    await change({ ca: OTHER_ROOT.cert });
});

t.test('holds also where somebody else changes the rest meanwhile', async (t) => {
    const stores = memoryWebhooks();
    const { update } = stores.exporters;
    let meanwhile: (() => Promise<unknown>) | null = null;
    const slow: typeof stores = {
        ...stores,
        exporters: {
            ...stores.exporters,
            async update(id, patch) {
                const act = meanwhile;
                meanwhile = null;
                await act?.();
                return await update.call(stores.exporters, id, patch);
            },
        },
    };
    const given = { headers: HEADERS, basic: BASIC };
    for (const [field, settings, first, second] of [
        ['headers', { url: HTTPS }, { proxy: PROXY }, { url: HTTP, ...given }],
        ['headers', { url: HTTPS }, { trust: 'self-signed' }, { proxy: PROXY }],
        ['headers', { url: HTTPS }, { ca: ROOT.cert }, { proxy: PROXY }],
        ['headers', { url: HTTP, headers: [], basic: null }, { proxy: PROXY }, { headers: HEADERS }],
    ] as const) {
        const { exporters, id, change } = await changing(t, settings, slow);
        meanwhile = () => change(second);
        await t.rejects(change(first), refusal(field), Object.keys(second).join());
        await exporters.remove(id);
    }

    const { exporters, id, change } = await changing(t, { url: HTTPS }, slow);
    meanwhile = () => change({ trust: 'self-signed' });
    await change({ proxy: PROXY });
    t.match(await exporters.get(id), { trust: 'strict', authentication: ['basic', 'proxy'] });
});
