import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Executor } from '../../../lib/transaction.ts';
import type { ChosenSubscriber, NewEvent, SubscribedExporters } from '../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, type WebhookBench } from './fixture.ts';

const KINDS = { kinds: ['idr_*'] };

/** Each makes an exporter one that chooses. */
const CHOICES: readonly Partial<StoredExporter>[] = [
    KINDS,
    { filter: { path: 'title', op: '=', value: 'x' } },
    { owner: 'ours' },
    { format: 'slack' },
    { format: 'template', template: { text: ['{{ body.title }}', null, 1] } },
];

const MESSAGE: FormattedMessage = {
    contentType: 'application/cloudevents+json',
    headers: [['ce-id', '1']],
    body: '{"é":"\\u0000\\"\u2028🦉"}',
    failure: null,
};

/** The event for those who chose it, and for all who do not choose. */
function chosenBy(subscribers: readonly ChosenSubscriber[]): NewEvent {
    return { event: sampleEvent(), recipients: { types: ['investigation'], subscribers } };
}

/** Accepts events at the beginning. */
async function acceptAt(bench: WebhookBench, ...newEvents: readonly NewEvent[]): Promise<void> {
    await bench.setTime(at(0));
    await bench.deliveries.accept(newEvents);
}

async function subscribersOf({ exporters }: WebhookBench): Promise<SubscribedExporters> {
    return present(await exporters.subscribers?.(), 'subscribers()');
}

/** Of whoever got the event. */
async function receivers(bench: WebhookBench, deliveries: readonly string[]): Promise<ReadonlySet<string | undefined>> {
    const rows = await Promise.all(deliveries.map((id) => bench.deliveries.get(id)));
    return new Set(rows.map((row) => row?.exporterId));
}

/** Exporters that choose which events they get, and in which format. */
export const subscriptionLaws: Laws<WebhookBench> = {
    async 'tells the running exporters that choose'(bench) {
        await bench.addExporter();
        await bench.addExporter({ ...KINDS, state: 'stopped' });
        const choosing = [];
        for (const [index, choice] of CHOICES.entries()) {
            choosing.push(await bench.addExporter({ ...choice, createdAt: at(index) }));
        }
        assert.deepEqual((await subscribersOf(bench)).exporters, choosing);
    },

    async 'passes by an exporter that has not chosen'(bench) {
        const plain = await bench.addExporter();
        for (const choice of CHOICES) {
            await bench.addExporter(choice);
        }
        const [accepted] = await bench.deliveries.accept([forAll(sampleEvent())]);
        assert.deepEqual(await receivers(bench, present(accepted).deliveries), new Set([plain.id]));
    },

    async 'stores a delivery for every running exporter that has chosen'(bench) {
        const plain = await bench.addExporter();
        const [one, another, stopped] = [
            await bench.addExporter(KINDS),
            await bench.addExporter({ ...KINDS, type: 'investigation_legacy' }),
            await bench.addExporter({ ...KINDS, state: 'stopped' }),
        ];
        const subscribers = [one.id, another.id, stopped.id, randomUUID()].map((exporterId) => ({ exporterId, message: null }));
        const [first, second] = await bench.deliveries.accept([chosenBy(subscribers), chosenBy(subscribers.slice(0, 1))]);
        assert.deepEqual(await receivers(bench, present(first).deliveries), new Set([plain.id, one.id, another.id]));
        assert.deepEqual(await receivers(bench, present(second).deliveries), new Set([plain.id, one.id]));
    },

    async 'hands out at once what was chosen'(bench) {
        const { id } = await bench.addExporter(KINDS);
        const [accepted] = await bench.acceptAtOnce(1, {}, chosenBy([{ exporterId: id, message: MESSAGE }]).recipients);
        assert.equal(only(present(accepted).handedOut).exporterId, id);
    },

    async 'accepts by the revision that it told'(bench) {
        await bench.addExporter(KINDS);
        const { revision } = await subscribersOf(bench);
        assert.equal((await bench.deliveries.accept([forAll(sampleEvent())], { revision })).length, 1);
    },

    async 'stores nothing by an outdated revision'(bench) {
        const plain = await bench.addExporter();
        const chooser = await bench.addExporter(KINDS);
        const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
            ['a new one', () => bench.addExporter(KINDS)],
            ['other kinds', () => bench.update(chooser.id, { kinds: null, filter: { path: 'title', op: 'exists', value: true } }, at(1))],
            ['a format', () => bench.update(chooser.id, { format: 'template', template: { text: '1' } }, at(1))],
            ['another template', () => bench.update(chooser.id, { template: { text: '2' } }, at(1))],
            ['another type', () => bench.update(chooser.id, { type: 'investigation_legacy' }, at(1))],
            ['one that begins to choose', () => bench.update(plain.id, KINDS, at(1))],
            ['one that is stopped', () => bench.update(plain.id, { state: 'stopped' }, at(1))],
            ['one that is started', () => bench.update(plain.id, { state: 'running' }, at(1))],
            ['one that chooses no more', () => bench.update(plain.id, { kinds: null }, at(1))],
            ['one that is removed', () => bench.remove(chooser.id, at(1))],
        ];
        for (const [what, change] of changes) {
            const { revision } = await subscribersOf(bench);
            await change();
            const outdated = bench.deliveries.accept([forAll(sampleEvent())], { revision });
            await assert.rejects(outdated, { code: 'CONFLICT', field: 'revision' }, what);
        }
        assert.deepEqual(await bench.listed(), []);
    },

    async 'stores nothing by a revision from before an exporter stopped by itself'(bench) {
        const { id } = await bench.addExporter(KINDS);
        await acceptAt(bench, chosenBy([{ exporterId: id, message: null }]));
        const { revision } = await subscribersOf(bench);
        const [claim] = await bench.claimDue();
        await bench.record([failure(present(claim), 1_000, { stopReason: 'The receiver answered 410 Gone' })]);
        await assert.rejects(bench.deliveries.accept([forAll(sampleEvent())], { revision }), { code: 'CONFLICT', field: 'revision' });
    },

    async 'keeps messages exactly, on every try'(bench) {
        const { id } = await bench.addExporter({ format: 'cloudevents' });
        const plain = await bench.addExporter({ createdAt: at(1) });
        await acceptAt(bench, chosenBy([{ exporterId: id, message: MESSAGE }]));
        for (const now of [at(0), at(10)]) {
            const claims = await bench.claimDue({ now });
            const messages = new Map(claims.map(({ exporter, message }) => [exporter.id, message]));
            assert.deepEqual(
                messages,
                new Map([
                    [id, MESSAGE],
                    [plain.id, null],
                ]),
            );
            await bench.record(
                claims.map((claim) => failure(claim, 0)),
                now,
            );
        }
    },

    async 'keeps why a message could not be made'(bench) {
        const { id } = await bench.addExporter({ format: 'template' });
        const message = { ...MESSAGE, headers: [], body: '', failure: 'Template: no such filter' };
        await acceptAt(bench, chosenBy([{ exporterId: id, message }]));
        const [claim] = await bench.claimDue();
        assert.deepEqual(claim?.message, message);
    },

    async 'keeps the message of a test'(bench) {
        const { id } = await bench.addExporter({ format: 'slack', state: 'stopped' });
        await acceptAt(bench, { event: sampleEvent({ kind: 'test' }), recipients: { exporterId: id, message: MESSAGE } });
        assert.deepEqual((await bench.claimDue())[0]?.message, MESSAGE);
    },

    async 'counts the bytes of messages, and reads no bodies beside them'(bench) {
        const { id } = await bench.addExporter({ format: 'slack' });
        const body = JSON.stringify('x'.repeat(1_000));
        const chosen = chosenBy([{ exporterId: id, message: { ...MESSAGE, body } }]);
        await acceptAt(bench, chosen, { ...chosen, event: sampleEvent() });
        const dispatched = await bench.dispatchedIds();
        const requests = dispatched.map((deliveryId) => ({ deliveryId, token: randomUUID(), duration: 60_000 }));
        const claims = await bench.deliveries.claim(requests, null, 1_500);
        assert.deepEqual(
            claims.map((claim) => claim?.event.body),
            [''],
        );
    },
};

/** Runs something in a transaction of the application, which commits when it has resolved. */
async function inTransaction(bench: WebhookBench, run: (tx: Executor) => Promise<void>): Promise<void> {
    const host = await bench.begin();
    try {
        await run(host.tx);
    } catch (error) {
        await host.rollback();
        throw error;
    }
    await host.commit();
}

/** The same in a transaction of the application. */
export const joinedSubscriptionLaws: Laws<WebhookBench> = {
    async 'accepts in a transaction for those who choose in what it sees'(bench) {
        const { id } = await bench.addExporter(KINDS);
        await inTransaction(bench, async (tx) => {
            const { revision } = present(await bench.exporters.subscribers?.(tx));
            await bench.deliveries.accept([chosenBy([{ exporterId: id, message: null }])], { tx, revision });
        });
        assert.equal(only(await bench.listed()).exporterId, id);
    },

    async 'leaves the transaction of the application usable when what was chosen is outdated'(bench) {
        await bench.addExporter(KINDS);
        const { revision } = await subscribersOf(bench);
        await bench.addExporter(KINDS);
        await inTransaction(bench, async (tx) => {
            const outdated = bench.deliveries.accept([forAll(sampleEvent())], { tx, revision });
            await assert.rejects(outdated, { code: 'CONFLICT', field: 'revision' });
            await bench.deliveries.accept([forAll(sampleEvent())], { tx });
        });
    },
};
