import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { Format } from '../../../../lib/webhooks/formats/format.ts';
import type { WebhookEvent } from '../../../../lib/webhooks/observing/emitted-events.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';
import { add, deliveredTo, FAILING, KINDS, listening } from '../../../support/told-notices.ts';

t.test('tells those who name the kinds, and never the exporter itself', async (t) => {
    const { deployment, told, kinds } = listening(t);
    const host = await deployment.start('host', { breakerAfter: 3, stopAfter: 3_600_000 });
    const failing = await add(deployment, host, { url: FAILING, name: 'siem', kinds: ['idr_*', ...KINDS] });
    const watcher = await add(deployment, host, { kinds: KINDS });
    const plain = await add(deployment, host, {});
    deployment.receive = ({ url }) => ({ result: url === FAILING ? 500 : 204 });
    await deployment.publish(host, 4);
    await deployment.advance(400_000);
    t.strictSame(kinds(), ['exporter_failing']);
    const { event, owner } = present(told[0]);
    const body = JSON.parse(event.body);
    t.match(body, { exporterId: failing, exporterName: 'siem', collector: 'default', failures: 3, lastOutcome: { code: 'server_error' } });
    t.equal(Date.parse(body.stopsAt) - Date.parse(body.failingSince), 3_600_000);
    t.equal(owner ?? null, null);
    deployment.receive = () => ({ result: 204 });
    await deployment.publish(host, 1);
    await deployment.advance(600_000);
    t.strictSame(kinds(), ['exporter_failing', 'exporter_recovered']);
    t.strictSame((await deliveredTo(deployment, watcher)).toReversed(), ['exporter_failing', 'exporter_recovered']);
    t.strictSame(new Set(await deliveredTo(deployment, failing)), new Set(['idr_investigation_created']));
    t.notOk((await deliveredTo(deployment, plain)).some((kind) => KINDS.includes(kind)));
    t.strictSame(await deployment.stores.exporters.notices?.(10), []);
});

t.test('tells that an exporter was stopped, with the reason, and once of two that watch each other', async (t) => {
    const { deployment, told, kinds } = listening(t);
    const host = await deployment.start('host');
    const [one, other] = [await add(deployment, host, { kinds: ['*', ...KINDS] }), await add(deployment, host, { kinds: ['*', ...KINDS] })];
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(host, 1);
    await deployment.advance(600_000);
    t.strictSame(kinds(), ['exporter_stopped', 'exporter_stopped']);
    t.strictSame(new Set(told.map(({ event }) => JSON.parse(event.body).exporterId)), new Set([one, other]));
    t.match(JSON.parse(present(told[0]).event.body), { reason: 'The receiver answered 410 Gone' });
});

t.test('tells each change once of two that watch each other, however their receivers take that', async (t) => {
    const { deployment, told, kinds } = listening(t);
    const host = await deployment.start('host', { breakerAfter: 3, stopAfter: 86_400_000 });
    const watching = { kinds: ['idr_*', 'exporter_failing', 'exporter_recovered'] };
    const [one, other] = [await add(deployment, host, watching), await add(deployment, host, watching)];
    deployment.receive = () => ({ result: 500 });
    await deployment.publish(host, 4);
    await deployment.advance(400_000);
    t.strictSame(kinds(), ['exporter_failing', 'exporter_failing'], 'that the news cannot be delivered is none');
    deployment.receive = () => ({ result: 204 });
    await deployment.advance(4_000_000);
    t.strictSame(kinds().slice(2), ['exporter_recovered', 'exporter_recovered']);
    for (const both of [told.slice(0, 2), told.slice(2)]) {
        t.strictSame(new Set(both.map(({ event }) => JSON.parse(event.body).exporterId)), new Set([one, other]));
    }
    for (const id of [one, other]) {
        const noticed = (await deliveredTo(deployment, id)).filter((kind) => KINDS.includes(kind));
        t.strictSame(new Set(noticed), new Set(['exporter_failing', 'exporter_recovered']));
        t.equal(noticed.length, 2);
    }
});

t.test('tells only what is of its owner to an exporter that has one', async (t) => {
    const { deployment, told } = listening(t);
    const host = await deployment.start('host');
    await add(deployment, host, { url: FAILING, owner: 'acme' });
    const [acme, other, deployments] = [
        await add(deployment, host, { kinds: KINDS, owner: 'acme' }),
        await add(deployment, host, { kinds: KINDS, owner: 'other' }),
        await add(deployment, host, { kinds: KINDS }),
    ];
    deployment.receive = ({ url }) => ({ result: url === FAILING ? 410 : 204 });
    await host.publish('idr_investigation_created', { ...INVESTIGATION, title: 'x' }, { owner: 'acme' });
    await deployment.advance(60_000);
    t.equal(JSON.parse(present(told[0]).event.body).owner, 'acme');
    t.strictSame(await deliveredTo(deployment, acme), ['exporter_stopped']);
    t.strictSame(await deliveredTo(deployment, other), []);
    t.strictSame(await deliveredTo(deployment, deployments), ['exporter_stopped']);
});

t.test('leaves to a host what goes out in a format of the application, and tells others', async (t) => {
    const { deployment, kinds } = listening(t);
    const format: Format = {
        name: 'acme',
        contentType: 'text/plain',
        make: ({ kind }) => ({ body: JSON.stringify({ title: `acme: ${kind}` }) }),
    };
    const host = await deployment.start('host', { formats: [format] });
    await add(deployment, host, { url: FAILING, owner: 'acme' });
    await add(deployment, host, { url: FAILING, owner: 'other' });
    const worker = await deployment.start('worker', { role: 'worker' });
    await worker.publish('idr_investigation_created', { ...INVESTIGATION, title: 'reads the subscribers' }, { owner: 'nobody' });
    const watcher = await add(deployment, host, { kinds: KINDS, owner: 'acme', format: 'acme' });
    const other = await add(deployment, host, { kinds: KINDS, owner: 'other' });
    deployment.receive = ({ url }) => ({ result: url === FAILING ? 410 : 204 });
    const { exporters } = deployment.stores;
    for (const owner of ['acme', 'other']) {
        await host.publish('idr_investigation_created', { ...INVESTIGATION, title: owner }, { owner });
    }
    host.kill();
    await deployment.advance(50_000);
    t.notOk(
        worker.errors.some(({ message }) => /format/i.test(message)),
        'it is no failure of the worker',
    );
    t.strictSame(kinds(), ['exporter_stopped']);
    t.strictSame(await deliveredTo(deployment, other), ['exporter_stopped']);
    t.equal((await exporters.notices?.(10))?.length, 1);
    t.strictSame(await deliveredTo(deployment, watcher), []);
    await deployment.start('host again', { formats: [format] });
    await deployment.advance(60_000);
    t.strictSame(await exporters.notices?.(10), []);
    t.strictSame(
        deployment.posts.filter(({ exporterId }) => exporterId === watcher).map(({ title }) => title),
        ['acme: exporter_stopped'],
    );
});

t.test('leaves nothing to a host that does not come, or for a format that is no more', async (t) => {
    const { deployment, kinds } = listening(t);
    const format: Format = { name: 'acme', contentType: 'text/plain', make: ({ kind }) => ({ body: kind }) };
    const host = await deployment.start('host', { formats: [format] });
    await add(deployment, host, { url: FAILING, owner: 'acme' });
    await add(deployment, host, { url: FAILING, owner: 'other' });
    const watcher = await add(deployment, host, { kinds: KINDS, owner: 'acme', format: 'acme' });
    const changed = await add(deployment, host, { kinds: KINDS, owner: 'other', format: 'acme' });
    const everything = await add(deployment, host, { kinds: KINDS });
    deployment.receive = ({ url }) => ({ result: url === FAILING ? 410 : 204 });
    await deployment.start('worker', { role: 'worker' });
    for (const owner of ['acme', 'other']) {
        await host.publish('idr_investigation_created', { ...INVESTIGATION, title: owner }, { owner });
    }
    host.kill();
    await deployment.advance(20_000);
    t.strictSame(kinds(), []);
    await deployment.stores.exporters.update(changed, { format: 'native' });
    await deployment.advance(10_000);
    t.strictSame(kinds(), ['exporter_stopped'], 'subscribers are read anew');
    t.strictSame(await deliveredTo(deployment, changed), ['exporter_stopped']);
    await deployment.advance(60_000);
    t.strictSame(kinds(), ['exporter_stopped', 'exporter_stopped']);
    t.strictSame(await deliveredTo(deployment, everything), ['exporter_stopped', 'exporter_stopped'], 'who waited with it is told');
    t.strictSame(await deliveredTo(deployment, watcher), []);
    t.strictSame(await deployment.stores.exporters.notices?.(10), []);
});

t.test('tells what a process has not lived to tell, once', async (t) => {
    const { deployment, kinds } = listening(t);
    const { exporters, deliveries } = deployment.stores;
    const { forgetNotices } = exporters;
    Object.assign(exporters, { forgetNotices: () => new Promise(() => {}) });
    const dies = await deployment.start('dies');
    await add(deployment, dies, { url: FAILING });
    const watcher = await add(deployment, dies, { kinds: KINDS });
    deployment.receive = ({ url }) => ({ result: url === FAILING ? 410 : 204 });
    await deployment.publish(dies, 1);
    await deployment.advance(1_000);
    dies.kill();
    t.equal((await exporters.notices?.(10))?.length, 1);
    Object.assign(exporters, { forgetNotices });
    await deployment.start('lives');
    await deployment.advance(30_000);
    t.strictSame(kinds(), ['exporter_stopped']);
    t.strictSame(await exporters.notices?.(10), []);
    t.equal((await deliveries.list({ exporterId: watcher, limit: 10 })).filter(({ kind }) => kind !== 'test').length, 1);
});

t.test('tells it later when the store is away, and says so', async (t) => {
    const { deployment, kinds } = listening(t);
    const host = await deployment.start('host');
    await add(deployment, host, { url: FAILING });
    const { exporters } = deployment.stores;
    const { notices } = exporters;
    t.ok(notices);
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(host, 1);
    deployment.storeIsAway = true;
    await deployment.advance(10_000);
    t.strictSame(kinds(), []);
    t.ok(host.errors.length > 0);
    deployment.storeIsAway = false;
    await deployment.advance(30_000);
    t.strictSame(kinds(), ['exporter_stopped']);
});

t.test('tells it later when the store takes no event', async (t) => {
    const { deployment, kinds } = listening(t);
    const { deliveries } = deployment.stores;
    const { accept } = deliveries;
    let full = true;
    const accepting: typeof accept = async (newEvents, options) => {
        if (full && newEvents.some(({ event }) => KINDS.includes(event.kind))) {
            throw new ScanwireError('UNAVAILABLE', 'The disk is full');
        }
        return await accept(newEvents, options);
    };
    Object.assign(deliveries, { accept: accepting });
    const host = await deployment.start('host');
    await add(deployment, host, { url: FAILING });
    await add(deployment, host, { kinds: KINDS });
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(host, 1);
    await deployment.advance(60_000);
    t.strictSame(kinds(), []);
    t.ok(host.errors.some(({ message }) => message === 'The disk is full'));
    full = false;
    await deployment.advance(60_000);
    t.strictSame(new Set(kinds()), new Set(['exporter_stopped']));
});

t.test('refuses them from the application, and takes them for subscriptions', async (t) => {
    const { deployment } = listening(t);
    const host = await deployment.start('host');
    await t.rejects(host.publish('exporter_failing', {}), { code: 'INVALID_INPUT', field: 'kind' });
    await t.rejects(host.exporters.create({ url: 'http://127.0.0.1/', kinds: ['exporter_*'] }), {
        code: 'INVALID_INPUT',
        field: 'kinds[0]',
    });
    const filter = { path: 'exporterName', op: '=', value: 'siem' } as const;
    await host.exporters.create({ url: 'http://127.0.0.1/', kinds: ['exporter_failing'], filter });
});

t.test('tells the application of the process, whatever that does with it', async (t) => {
    const { deployment } = listening(t);
    const heard: WebhookEvent[] = [];
    const onEvent = (event: WebhookEvent): void => {
        if (event.type.startsWith('exporter.')) {
            heard.push(event);
            throw new Error('in the callback');
        }
    };
    const errors: Error[] = [];
    const host = await deployment.start('host', { breakerAfter: 3, stopAfter: 3_600_000, onEvent, onError: (error) => errors.push(error) });
    const id = await add(deployment, host, { url: FAILING });
    deployment.receive = () => ({ result: 500 });
    await deployment.publish(host, 4);
    await deployment.advance(400_000);
    const [failing] = heard;
    t.match(failing, { type: 'exporter.failing', exporterId: id, collector: 'default', failures: 3, reason: null, code: 'server_error' });
    deployment.receive = () => ({ result: 204 });
    await deployment.publish(host, 1);
    await deployment.advance(4_000_000);
    t.match(heard[1], { type: 'exporter.recovered', exporterId: id, collector: 'default', failures: 0 });
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(host, 1);
    await deployment.advance(4_000_000);
    t.strictSame(
        heard.map(({ type }) => type),
        ['exporter.failing', 'exporter.recovered', 'exporter.stopped'],
    );
    t.match(heard[2], { exporterId: id, reason: /410/ });
    t.equal(errors.filter(({ message }) => message === 'in the callback').length, 3);
});
