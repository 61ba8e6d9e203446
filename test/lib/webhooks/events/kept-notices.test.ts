import t, { type Test } from 'tap';
import type { ExporterNotice } from '../../../../lib/webhooks/events/exporter-notices.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import type { Format } from '../../../../lib/webhooks/formats/format.ts';
import type { WebhookEvent } from '../../../../lib/webhooks/observing/emitted-events.ts';
import { INVESTIGATION, type SimulatedDeployment } from '../../../support/simulated-deployment.ts';
import { add, deliveredTo, FAILING, KINDS, listening, putBefore, stoppedNotices } from '../../../support/told-notices.ts';

const POLL_EVERY = 5_000;

/** Of a later release. */
const UNKNOWN = { kind: 'exporter_paused' as 'exporter_stopped' };

t.test('tells what comes behind many that are left to a host', async (t) => {
    const { deployment, kinds } = listening(t);
    const format: Format = { name: 'acme', contentType: 'text/plain', make: ({ kind }) => ({ body: JSON.stringify({ title: kind }) }) };
    const host = await deployment.start('host', { formats: [format] });
    await add(deployment, host, { url: FAILING });
    const watcher = await add(deployment, host, { kinds: KINDS, owner: 'acme', format: 'acme' });
    host.kill();
    const left = putBefore(deployment, stoppedNotices(230, { owner: 'acme' }));
    const worker = await deployment.start('worker', { role: 'worker' });
    deployment.receive = () => ({ result: 410 });
    await worker.publish('idr_investigation_created', { ...INVESTIGATION, title: 'x' });
    await deployment.advance(50_000);
    t.strictSame(kinds(), ['exporter_stopped']);
    t.equal(left().length, 230);
    t.strictSame(await deliveredTo(deployment, watcher), []);
});

t.test('reads each of many that are left once in a poll', async (t) => {
    const { deployment } = listening(t);
    putBefore(deployment, stoppedNotices(450, UNKNOWN));
    let read = 0;
    watchReads(deployment, async (notices) => {
        const found = await notices;
        read += found.length;
        return found;
    });
    await deployment.start('host');
    await deployment.advance(POLL_EVERY - 1);
    t.equal(read, 450);
    await deployment.advance(POLL_EVERY);
    t.equal(read, 900);
});

t.test('does not read a page for ever that a store gives again and again', async (t) => {
    const { deployment } = listening(t);
    const page = stoppedNotices(100, UNKNOWN);
    let reads = 0;
    watchReads(deployment, async () => {
        // Else a failure of this test would have no end.
        return ++reads > 10 ? [] : page;
    });
    await deployment.start('host');
    await deployment.advance(POLL_EVERY - 1);
    t.equal(reads, 2);
});

t.test('reads once more behind a reading that lasts, however often that was wanted, and not once it is stopped', async (t) => {
    const { deployment } = listening(t);
    const gates: (() => void)[] = [];
    watchReads(deployment, async () => {
        await new Promise<void>((resolve) => gates.push(resolve));
        return [];
    });
    const host = await deployment.start('host', { breakerAfter: 100 });
    await add(deployment, host, { url: FAILING });
    deployment.receive = () => ({ result: 500 });
    await deployment.publish(host, 5);
    await deployment.advance(60_000);
    t.equal(gates.length, 1);
    gates[0]?.();
    await deployment.advance(60_000);
    t.equal(gates.length, 2);
    const closed = host.close();
    await deployment.advance(100);
    gates[1]?.();
    await deployment.finish(closed);
    t.equal(gates.length, 2);
});

for (const [title, all, isHeld] of [
    ['leaves those behind the one that it publishes', 3, 0],
    ['reads no further page', 230, 99],
] as const) {
    t.test(`${title} when it is stopped`, async (t) => {
        const { deployment } = listening(t);
        const notices = stoppedNotices(all);
        const left = putBefore(deployment, notices);
        const { exporters } = deployment.stores;
        const { forgetNotices } = exporters;
        let release = (): void => {};
        const released = new Promise<void>((resolve) => {
            release = resolve;
        });
        Object.assign(exporters, {
            forgetNotices: async (ids: readonly string[]) => {
                await (ids.includes(notices[isHeld]?.id ?? '') ? released : null);
                return await forgetNotices?.(ids);
            },
        });
        let reads = 0;
        watchReads(deployment, (found) => {
            reads += 1;
            return found;
        });
        const host = await deployment.start('host');
        await deployment.advance(100);
        const closed = host.close();
        await deployment.advance(100);
        release();
        await deployment.finish(closed);
        t.equal(left().length, all - isHeld - 1);
        t.equal(reads, 1);
    });
}

t.test('reports one of which no event can be made, tells the application, and tells what comes behind it', async (t) => {
    const [notice] = stoppedNotices(1, { collector: '' });
    const { host, kinds, heard, left, exporterId } = await hostWithNotices(t, [notice as ExporterNotice]);
    t.strictSame(kinds(), ['exporter_stopped']);
    t.strictSame(left(), []);
    t.match(
        host.errors.map(({ message }) => message).filter((message) => message.includes('collector')),
        [`That exporter ${notice?.exporterId} is in another state (exporter_stopped)`],
    );
    t.match(heard, [
        { type: 'exporter.stopped', exporterId: notice?.exporterId, collector: '', reason: 'It is gone' },
        { type: 'exporter.stopped', exporterId },
    ]);
});

t.test('leaves one of a kind that it does not know to a later release, and tells what comes behind it', async (t) => {
    const { host, kinds, left } = await hostWithNotices(t, stoppedNotices(1, UNKNOWN));
    t.strictSame(kinds(), ['exporter_stopped']);
    t.equal(left().length, 1);
    t.notOk(host.errors.some(({ message }) => message.includes('exporter')));
});

t.test('reports and tells each to one application, however many processes find it at the same time', async (t) => {
    const { deployment, kinds } = listening(t);
    const [usable, unusable] = stoppedNotices(2);
    const left = putBefore(deployment, [usable as ExporterNotice, { ...(unusable as ExporterNotice), collector: '' }]);
    let reads = 0;
    let release = (): void => {};
    const bothHaveRead = new Promise<void>((resolve) => {
        release = resolve;
    });
    watchReads(deployment, async (notices) => {
        const found = await notices;
        reads += 1;
        if (reads === 2) {
            release();
        }
        await bothHaveRead;
        return found;
    });
    const heard: WebhookEvent[] = [];
    const onEvent = (event: WebhookEvent): void => void (event.type === 'exporter.stopped' && heard.push(event));
    const [one, other] = [await deployment.start('one', { onEvent }), await deployment.start('other', { onEvent })];
    await deployment.advance(1_000);
    t.equal(reads, 2);
    t.strictSame(left(), []);
    t.strictSame(kinds(), ['exporter_stopped']);
    t.strictSame(
        heard.map((event) => 'exporterId' in event && event.exporterId),
        [usable?.exporterId, unusable?.exporterId],
    );
    t.match(
        [...one.errors, ...other.errors].map(({ message }) => message).filter((message) => message.includes('exporter')),
        [`That exporter ${unusable?.exporterId}`],
    );
});

t.test('tells the application also of one that could not be forgotten at first', async (t) => {
    const { deployment, kinds } = listening(t);
    putBefore(deployment, stoppedNotices(1));
    const { exporters } = deployment.stores;
    const { forgetNotices } = exporters;
    Object.assign(exporters, {
        forgetNotices: async () => {
            Object.assign(exporters, { forgetNotices });
            throw new Error('not now');
        },
    });
    const heard: string[] = [];
    // A process reaches the methods that the store has when it starts.
    await deployment.start('one', { onEvent: ({ type }) => void heard.push(type) });
    await deployment.advance(1_000);
    t.strictSame(heard, []);
    await deployment.start('other', { onEvent: ({ type }) => void heard.push(type) });
    await deployment.advance(1_000);
    t.strictSame(heard, ['exporter.stopped']);
    t.strictSame(kinds(), ['exporter_stopped']);
});

/** A host whose store has notices before the one of an exporter that is stopped. */
async function hostWithNotices(t: Test, notices: readonly ExporterNotice[]) {
    const { deployment, kinds } = listening(t);
    const left = putBefore(deployment, notices);
    const heard: WebhookEvent[] = [];
    const onEvent = (event: WebhookEvent): void => void (event.type.startsWith('exporter.') && heard.push(event));
    const host = await deployment.start('host', { onEvent });
    const exporterId = await add(deployment, host, { url: FAILING });
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(host, 1);
    await deployment.advance(60_000);
    return { host, kinds, heard, left, exporterId };
}

/** Has every reading of the store's notices go through `watch`. */
function watchReads(
    { stores: { exporters } }: SimulatedDeployment,
    watch: (notices: Promise<readonly ExporterNotice[]>) => Promise<readonly ExporterNotice[]>,
): void {
    const { notices } = exporters as Required<ExporterStore>;
    Object.assign(exporters, { notices: (limit: number, after?: number) => watch(notices(limit, after)) });
}
