import t, { type Test } from 'tap';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import type { ExporterChanges } from '../../../../lib/webhooks/exporters/exporter-patch.ts';
import { investigation } from '../../../support/investigation.ts';
import { recordingProcess } from '../../../support/recording-process.ts';

const URL = 'https://receiver.example/hook';

t.test('holds each owner to so many exporters, and nobody else', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks(), { maxExportersPerOwner: 2, owners: { big: { maxExporters: 3 } } });
    const made = async (owner: string | null, times: number): Promise<number> => {
        const all = await Promise.allSettled(Array.from({ length: times }, () => exporters.create({ url: URL, owner })));
        const reasons = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
        t.ok(
            reasons.every(({ code, field }) => code === 'CONFLICT' && field === 'owner'),
            `${reasons.map(({ message }) => message)}`,
        );
        return (await exporters.summaries(owner === null ? {} : { owner })).length;
    };

    for (let time = 0; time < 3; time += 1) {
        await made('small', 1);
        await made('big', 1);
    }
    t.equal(await made('small', 1), 2);
    t.equal(await made('big', 1), 3);
    const [one] = await exporters.summaries({ owner: 'small' });
    await exporters.remove(one?.id ?? '');
    t.equal(await made('small', 1), 2, 'a place that is free again');
    const hasty = await made('hasty', 5);
    t.ok(hasty <= 2, 'never more, however many are made at once');
    t.equal(await made(null, 4), 2 + 3 + hasty + 4, 'the deployment itself has as many as it likes');
});

t.test('lets an owner who has a number of his own of zero have none', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks(), { owners: { nobody: { maxExporters: 0 } } });
    await t.rejects(exporters.create({ url: URL, owner: 'nobody' }), {
        code: 'CONFLICT',
        field: 'owner',
        message: 'Owner cannot have more exporters than 0',
    });
    t.strictSame(await exporters.list(), []);
});

t.test('lets the exporters of an owner belong to his collectors only', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks(), { owners: { ann: { collectors: ['edge', 'far'] } } });
    const refusal = { code: 'INVALID_INPUT', field: 'collector', message: 'Collector must be one that its owner may use: edge, far' };
    await t.rejects(exporters.create({ url: URL, owner: 'ann' }), refusal, 'not even the default one');
    const { exporter } = await exporters.create({ url: URL, owner: 'ann', collector: 'edge' });
    await t.rejects(exporters.update(exporter.id, { collector: 'default' }), refusal);
    for (const draft of [{ owner: 'ann' }, { id: exporter.id, name: 'other' }]) {
        const preview = await exporters.previewDraft(draft, 'idr_investigation_created', investigation);
        t.match(preview, { wanted: true }, 'what is sent does not depend on it');
    }
    t.equal((await exporters.get(exporter.id)).collector, 'edge');
    for (const owner of ['bob', null]) {
        t.equal((await exporters.create({ url: URL, owner, collector: 'other' })).exporter.collector, 'other');
    }
});

t.test('lets the exporters of an owner call what is open to him, and who has nothing of his own what is open to all', async (t) => {
    const guard = egressGuard({ allow: ['10.0.0.0/8'], owners: { ann: ['192.168.7.0/24'], shut: [] } });
    const { exporters } = recordingProcess(t, memoryWebhooks(), { guard });
    const [ofAll, ofAnn] = ['https://10.1.2.3/', 'https://192.168.7.7/'];
    const settings = (url: string, field: string) => ({
        url: field === 'url' ? url : URL,
        ...(field === 'oauth.tokenUrl' && { oauth: { tokenUrl: url, clientId: 'id', clientSecret: 'secret' } }),
        ...(field === 'proxy.url' && { proxy: { url } }),
    });
    for (const field of ['url', 'oauth.tokenUrl', 'proxy.url']) {
        for (const [owner, open, closed] of [
            ['ann', ofAnn, ofAll],
            ['bob', ofAll, ofAnn],
            [null, ofAll, ofAnn],
        ] as const) {
            const refusal = { code: 'INVALID_INPUT', field, message: /points to a private address/ };
            await t.rejects(exporters.create({ ...settings(closed, field), owner }), refusal, `${owner} ${field}`);
            const { exporter } = await exporters.create({ ...settings(open, field), owner });
            await t.rejects(exporters.update(exporter.id, settings(closed, field)), refusal, `${owner} ${field}, changed`);
        }
        await t.rejects(exporters.create({ ...settings(ofAll, field), owner: 'shut' }), { code: 'INVALID_INPUT', field });
    }
});

t.test('sends what is of an owner as such, so that it goes where that one may call', async (t) => {
    const { exporters, sent, start, work } = recordingProcess(t, memoryWebhooks());
    await start();
    await work(['default']);
    for (const owner of ['ann', null]) {
        const { exporter } = await exporters.create({ url: URL, owner });
        await exporters.test(exporter.id);
    }
    t.strictSame(
        sent.map(({ owner }) => owner),
        ['ann', null],
    );
});

/** Exporters, and what somebody else does, once, between the next look at one and what follows from it. */
function interrupted(t: Test) {
    const { exporters: store, ...stores } = memoryWebhooks();
    let next: (() => Promise<unknown>) | null = null;
    const get = async (id: string) => {
        const found = await store.get(id);
        const act = next;
        next = null;
        await act?.();
        return found;
    };
    const { exporters } = recordingProcess(t, { ...stores, exporters: { ...store, get } });
    return {
        exporters,
        meanwhile: (act: () => Promise<unknown>): void => {
            next = act;
        },
    };
}

t.test('gives an owner who makes an exporter nothing that the operator gives', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks());
    const proxy = { url: 'https://proxy.example.com', resolvesNames: true };
    for (const [field, settings] of [
        ['trust', { trust: 'all' }],
        ['proxy.resolvesNames', { proxy }],
    ] as const) {
        const asked = { url: URL, owner: 'ann', ...settings };
        await t.rejects(exporters.create(asked, { asOwner: true }), {
            code: 'INVALID_INPUT',
            field,
            message: /is for the operator to give$/,
        });
        t.strictSame(await exporters.list(), []);
        await exporters.remove((await exporters.create(asked)).exporter.id);
    }

    const { exporter } = await exporters.create({ url: URL, owner: 'ann', trust: 'strict', proxy: { url: proxy.url } }, { asOwner: true });
    t.match(exporter, { owner: 'ann', trust: 'strict', authentication: ['proxy'] });
});

t.test('takes to another receiver nothing that the operator gives while the owner changes the URL', async (t) => {
    const { exporters, meanwhile } = interrupted(t);
    const { exporter } = await exporters.create({ url: URL, owner: 'ann' });
    const change = { url: 'https://elsewhere.example/', keepHeaders: true };
    const proxy = { url: 'https://proxy.example.com', resolvesNames: true };

    meanwhile(() => exporters.update(exporter.id, { proxy }, { wait: false }));
    await t.rejects(exporters.update(exporter.id, change, { asOwner: true, wait: false }), { code: 'INVALID_INPUT', field: 'url' });
    await exporters.update(exporter.id, { proxy: null }, { wait: false });

    meanwhile(() => exporters.update(exporter.id, { trust: 'all' }, { wait: false }));
    await exporters.update(exporter.id, change, { asOwner: true, wait: false });
    t.match(await exporters.get(exporter.id), { url: change.url, trust: 'strict' });
});

t.test('leaves taken back what the operator takes back while the owner changes something', async (t) => {
    const { exporters, meanwhile } = interrupted(t);
    const { exporter } = await exporters.create({ url: URL, owner: 'ann', trust: 'all' });
    for (const change of [{ url: `${URL}other` }, { name: 'other', trust: 'all' }, { proxy: null }] as const) {
        await exporters.update(exporter.id, { trust: 'all' }, { wait: false });
        meanwhile(() => exporters.update(exporter.id, { trust: 'strict' }, { wait: false }));
        await exporters.update(exporter.id, change, { asOwner: true, wait: false });
        t.equal((await exporters.get(exporter.id)).trust, 'strict', Object.keys(change).join());
    }

    await exporters.update(exporter.id, { trust: 'all' }, { wait: false });
    const proxy = { url: 'https://proxy.example.com' };
    await t.rejects(exporters.update(exporter.id, { proxy }, { asOwner: true, wait: false }), { code: 'INVALID_INPUT', field: 'proxy' });
    await exporters.update(exporter.id, { proxy, trust: 'strict' }, { asOwner: true, wait: false });
});

t.test('keeps what is open to whom as a setting of the deployment', async (t) => {
    const stores = memoryWebhooks();
    const of = (own: readonly string[]) => egressGuard({ allow: ['10.0.0.0/8'], owners: { ann: own } });
    await recordingProcess(t, stores, { guard: of(['127.0.0.2', '127.0.0.1']) }).start();
    const { settings, generation } = await stores.settings.read();
    t.strictSame(settings?.egress, { allow: ['10.0.0.0/8'], owners: { ann: ['127.0.0.1', '127.0.0.2'] } });
    await recordingProcess(t, stores, { guard: of(['127.0.0.1', '127.0.0.2', '127.0.0.2']) }).start();
    t.equal((await stores.settings.read()).generation, generation, 'the order is none of it');
    await recordingProcess(t, stores, { guard: egressGuard(settings?.egress ?? { allow: [] }), role: 'worker' }).start();
    const narrower = recordingProcess(t, stores, { guard: egressGuard({ allow: ['10.0.0.0/8'] }), role: 'worker' });
    await t.rejects(narrower.start(), { code: 'MISCONFIGURED', field: 'egress' });
});

t.test('refuses limits that cannot be', async (t) => {
    for (const [field, options] of [
        ['maxExportersPerOwner', { maxExportersPerOwner: -1 }],
        ['owners.ann.maxExporters', { owners: { ann: { maxExporters: 1.5 } } }],
        ['owners.ann.collectors[0]', { owners: { ann: { collectors: ['no name'] } } }],
        ['owners.ann.trust', { owners: { ann: { trust: 'all' } } }],
    ] as const) {
        t.throws(() => recordingProcess(t, memoryWebhooks(), options as object), { code: 'MISCONFIGURED', field });
    }
    t.throws(() => egressGuard({ allow: [], owners: { ann: ['10.0.0.0/8', '10.0.0.0/99'] } }), {
        code: 'MISCONFIGURED',
        field: 'owners.ann[1]',
        message: 'Entry 2 of the egress allow list owners.ann is not a CIDR block: write address/bits',
    });
});

t.test('gives an exporter to an owner within what that one may have', async (t) => {
    const guard = egressGuard({ allow: ['10.0.0.0/8'], owners: { ann: [] } });
    const owners = { ann: { collectors: ['default'] }, full: { maxExporters: 1 } };
    const { exporters } = recordingProcess(t, memoryWebhooks(), { guard, owners });
    const update = (id: string, changes: ExporterChanges) => exporters.update(id, changes, { wait: false });

    const inside = (await exporters.create({ url: 'https://10.1.2.3/' })).exporter;
    await t.rejects(update(inside.id, { owner: 'ann' }), { code: 'INVALID_INPUT', field: 'url' }, 'not open to her');
    t.match((await update(inside.id, { owner: 'ann', url: URL })).exporter, { owner: 'ann' });
    await t.rejects(update(inside.id, { url: 'https://10.1.2.3/' }), { code: 'INVALID_INPUT', field: 'url' });

    const proxied = (await exporters.create({ url: URL, proxy: { url: 'https://10.1.2.3/' } })).exporter;
    await t.rejects(update(proxied.id, { owner: 'ann' }), { code: 'INVALID_INPUT', field: 'proxy.url' });

    const far = (await exporters.create({ url: URL, collector: 'far' })).exporter;
    await t.rejects(update(far.id, { owner: 'ann' }), { code: 'INVALID_INPUT', field: 'collector' });

    const both = [inside.id, far.id];
    const all = await Promise.allSettled(both.map((id) => update(id, { owner: 'full', name: 'new' })));
    const full = await exporters.summaries({ owner: 'full' });
    t.ok(full.length <= 1, 'never more, however many are given at once');
    for (const [index, { status }] of all.entries()) {
        const { owner, name } = await exporters.get(both[index] as string);
        t.equal(owner === 'full' && name === 'new', status === 'fulfilled', 'else it is as it was');
    }
    await exporters.create({ url: URL, owner: 'full' }).catch(() => {});
    await t.rejects(update(proxied.id, { owner: 'full' }), { code: 'CONFLICT', field: 'owner' });
    t.match(await exporters.get(proxied.id), { owner: null });
});

t.test('lets no owner give an exporter away, nor change one that was given to another meanwhile', async (t) => {
    const { exporters, meanwhile } = interrupted(t);
    const { exporter } = await exporters.create({ url: URL, owner: 'ann' });
    const asOwner = { asOwner: true, wait: false };
    const refusal = { code: 'INVALID_INPUT', field: 'owner', message: 'Owner must stay: that is for the operator to give' };
    for (const owner of ['bob', null]) {
        await t.rejects(exporters.update(exporter.id, { owner }, asOwner), refusal);
    }
    t.match((await exporters.update(exporter.id, { owner: 'ann', name: 'hers' }, asOwner)).exporter, { owner: 'ann', name: 'hers' });

    meanwhile(() => exporters.update(exporter.id, { owner: 'bob' }, { wait: false }));
    await t.rejects(exporters.update(exporter.id, { url: 'https://elsewhere.example/' }, asOwner), refusal);
    const stored = await exporters.show(exporter.id, { showUrl: true });
    t.match(stored, { owner: 'bob', url: URL });
});

t.test('keeps the owner of an exporter that has got an event', async (t) => {
    const { exporters, publish } = recordingProcess(t, memoryWebhooks());
    const { exporter } = await exporters.create({ url: URL, owner: 'ann' });
    await exporters.start(exporter.id, { wait: false });
    await publish('idr_investigation_created', investigation, { owner: 'ann' });
    await t.rejects(exporters.update(exporter.id, { owner: 'bob' }, { wait: false }), { code: 'CONFLICT', field: 'owner' });
    t.match((await exporters.update(exporter.id, { owner: 'ann', name: 'same' }, { wait: false })).exporter, {
        owner: 'ann',
        name: 'same',
    });
});
