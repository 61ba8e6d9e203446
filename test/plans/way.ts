import { randomUUID } from 'node:crypto';
import { only } from '../../adapters/contract/assertions.ts';
import { BEGIN_WITHIN, failure, forAll, holderOf, sampleEvent, success } from '../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { DeliveryStore, DispatchOptions, HandedOut, SweepOptions } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { HandOutOptions } from '../../lib/webhooks/dispatching/reservations.ts';
import type { ExporterStore } from '../../lib/webhooks/exporters/exporter-store.ts';
import type { BreakerRules } from '../../lib/webhooks/outcomes/breaker.ts';
import type { Execution, ExplainedConnection } from './executed-plans.ts';

/** What each statement of a delivery's way executed, by what it is for. */
export type Way = ReadonlyMap<string, Execution>;

export const HAND_OUT: Required<HandOutOptions> = { window: 400, breakerAfter: 5, beginWithin: BEGIN_WITHIN };
/** Such that no failure of the way opens it. */
export const BREAKER: BreakerRules = { after: 1_000_000, firstProbe: 1_000, maxProbe: 4_000, stopAfter: 1_000_000_000, window: 400 };
const DISPATCH: DispatchOptions = { ...HAND_OUT, limit: 500 };
const SWEEP: SweepOptions = { requeueAfter: 60_000, limit: 500 };

/** What begins so needs what is kept of rates. */
export const AT_RATE = 'at a rate: ';
const RATE = 1_000;

/** Of a list of events. */
export const KEYED_LIST = 'accept two with keys';

/** The first dispatch of a second raises marks, and every fifth second one passes all that has waited, dead or not. */
export const LOOK_THROUGH = 'look through all that waits';

/**
 * Calls every statement of a delivery's way, each for one row, or two where one has a statement of its own, and those of the polls once more when there is nothing for them. None is left
 * unfinished.
 */
export async function wayOf(connection: ExplainedConnection): Promise<Way> {
    const way = new Map<string, Execution>();
    const { deliveries, exporters } = postgresWebhooks({ pool: connection.pool, notify: false });
    async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
        let result: { readonly value: T } | undefined;
        const execution = await connection.executed(async () => {
            result = { value: await run() };
        });
        way.set(name, execution);
        return (result as { readonly value: T }).value;
    }

    await step('read the time', () => deliveries.now());
    await step(LOOK_THROUGH, () => deliveries.dispatch(DISPATCH));
    await quickWay(deliveries, step);
    await chosenWay(deliveries, exporters, step);
    await waitingWay(connection, deliveries, step);
    await lostWay(deliveries, step);
    await step('hand out nothing', () => deliveries.dispatch(DISPATCH));
    await ratedWay(deliveries, step);
    await step('sweep nothing', () => deliveries.sweep(SWEEP));
    await foldedWay(connection, step);
    await step('name the sessions', () => deliveries.sessions());
    return way;
}

type Step = <T>(name: string, run: () => Promise<T>) => Promise<T>;

/** Accepted with its claim, read by another process, begun and finished; then the next, which is quicker, and two together. */
async function quickWay(deliveries: DeliveryStore, step: Step): Promise<void> {
    const handedOut = await acceptOne(deliveries, step);
    const { deliveryId, token } = holderOf(handedOut);
    await step('read what was handed out', () =>
        deliveries.claim([{ deliveryId, token: randomUUID(), duration: 30_000, reservation: token, keepsReservation: true }], null),
    );
    await step(
        'keep a trace',
        async () => await deliveries.traces?.keep([{ eventId: randomUUID(), traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }]),
    );
    const traced = { ...forAll(sampleEvent()), traceparent: `00-${'3'.repeat(32)}-${'4'.repeat(16)}-01` };
    const one = only(only(await step('accept with a trace', () => deliveries.accept([traced], { handOut: HAND_OUT }))).handedOut);
    await deliveries.recordOutcomes([success(holderOf(one), { begunAt: await deliveries.now() })], BREAKER);
    await step('read a trace', async () => await deliveries.traces?.of([randomUUID()]));
    const response = { deliveryId, token, body: { text: 'not today', bytes: 9, truncated: false } };
    await step('keep a response', async () => await deliveries.responses?.keep([response]));
    const begunAt = await deliveries.now();
    await step('finish what was handed out', () => deliveries.recordOutcomes([success(holderOf(handedOut), { begunAt })], BREAKER));
    // Of an exporter that has taken one in this second.
    const next = await acceptOne(deliveries, step, 'accept and hand out the next');
    await step('finish the next', () => deliveries.recordOutcomes([success(holderOf(next), { begunAt })], BREAKER));
    const two = await step('accept and hand out two', () =>
        deliveries.accept(
            [forAll(sampleEvent()), forAll(sampleEvent())].map((one) => ({ ...one, isJson: true })),
            { handOut: HAND_OUT },
        ),
    );
    const both = two.flatMap(({ handedOut }) => handedOut.map((one) => success(holderOf(one), { begunAt })));
    await step('finish two', () => deliveries.recordOutcomes(both, BREAKER));
    await step('get a delivery', () => deliveries.get(deliveryId));
    await step('list its attempts', () => deliveries.attempts(deliveryId));
    await step('list its responses', async () => await deliveries.responses?.of(deliveryId));
}

/** For an exporter with a subscription; and with a key of the caller's, then the same once more. */
async function chosenWay(deliveries: DeliveryStore, exporters: ExporterStore, step: Step): Promise<void> {
    const subscribed = await step('read subscriptions', async () => await exporters.subscribers?.());
    const { id: exporterId } = only(subscribed?.exporters ?? []);
    const recipients = { types: [], subscribers: [{ exporterId, message: null }] };
    const keyed = { ...forAll(sampleEvent()), idempotency: { key: randomUUID(), digest: 'of the body' } };
    for (const [name, newEvent] of [
        ['accept for a subscriber', { event: sampleEvent(), recipients }],
        ['accept with a key', keyed],
    ] as const) {
        const { handedOut } = only(await step(name, () => deliveries.accept([newEvent], { handOut: HAND_OUT })));
        await deliveries.recordOutcomes([success(holderOf(only(handedOut)), { begunAt: await deliveries.now() })], BREAKER);
    }
    const repeated = { ...keyed, event: sampleEvent() };
    await step('accept with the key once more', () => deliveries.accept([repeated], { handOut: HAND_OUT }));

    const others = [keyed, keyed].map((one) => ({ ...one, event: sampleEvent(), idempotency: { ...one.idempotency, key: randomUUID() } }));
    const two = await step(KEYED_LIST, () => deliveries.accept(others, { handOut: HAND_OUT }));
    const begunAt = await deliveries.now();
    await deliveries.recordOutcomes(
        two.flatMap(({ handedOut }) => handedOut.map((one) => success(holderOf(one), { begunAt }))),
        BREAKER,
    );
    const again = others.map((one) => ({ ...one, event: sampleEvent() }));
    await step('repeat two', () => deliveries.accept(again, { handOut: HAND_OUT }));
    // As those that are published each by a call of its own.
    const inTime = { handOut: HAND_OUT, lockTimeout: 1_000 };
    await step('repeat one in time', () => deliveries.accept([repeated], inTime));
    await step('repeat two in time', () => deliveries.accept(again, inTime));
}

async function acceptOne(
    deliveries: DeliveryStore,
    step: Step,
    name = 'accept and hand out',
    beginWithin = BEGIN_WITHIN,
): Promise<HandedOut> {
    const accepted = await step(name, () => deliveries.accept([forAll(sampleEvent())], { handOut: { ...HAND_OUT, beginWithin } }));
    return only(only(accepted).handedOut);
}

/** Accepted in a transaction of the host, handed out, named in a beat, failed; handed out once more and claimed. */
async function waitingWay({ pool }: ExplainedConnection, deliveries: DeliveryStore, step: Step): Promise<void> {
    const tx = await pool.connect();
    await tx.query('begin');
    await step('accept in a transaction', () => deliveries.accept([forAll(sampleEvent())], { tx }));
    await tx.query('commit');
    tx.release();

    const session = { id: randomUUID(), process: 'plans', slots: { default: 400 } };
    const first = only((await step('hand out one', () => deliveries.dispatch(DISPATCH))).handedOut);
    const { deliveryId, token } = holderOf(first);
    const begunAt = await deliveries.now();
    const begun = { upTo: begunAt, attempts: [{ deliveryId, token, claimedAt: begunAt, duration: 30_000 }] };
    // Whoever begins looks for the lowest in flight, which reads what vacuum has left.
    await deliveries.keepAlive(session, 30_000);
    await step('keep alive and name one', () => deliveries.keepAlive(session, 30_000, begun));
    await step('keep alive', () => deliveries.keepAlive(session, 30_000));
    await step('finish with a failure', () => deliveries.recordOutcomes([failure(holderOf(first), 0)], BREAKER));

    const second = only((await step('hand out one again', () => deliveries.dispatch(DISPATCH))).handedOut);
    const reservation = holderOf(second).token;
    const claim = only(
        await step('claim one', () => deliveries.claim([{ deliveryId, token: randomUUID(), duration: 30_000, reservation }], session.id)),
    );
    await step('finish what was claimed', () => deliveries.recordOutcomes([success(claim as NonNullable<typeof claim>)], BREAKER));
    await step('end sessions', () => deliveries.endSessions([session.id]));
}

/** Handed out while there is a rate for all exporters together. */
async function ratedWay(deliveries: DeliveryStore, step: Step): Promise<void> {
    await deliveries.accept([forAll(sampleEvent())]);
    const rated = { ...DISPATCH, rate: RATE };
    const one = only((await step(`${AT_RATE}hand out one`, () => deliveries.dispatch(rated))).handedOut);
    await deliveries.recordOutcomes([success(holderOf(one), { begunAt: await deliveries.now() })], BREAKER);
    await step(`${AT_RATE}hand out nothing`, () => deliveries.dispatch(rated));
}

/** What has ended becomes part of the numbers, seldom; then there is nothing to do. */
async function foldedWay({ pool }: ExplainedConnection, step: Step): Promise<void> {
    await step('fold what has ended', () => pool.query('select scanwire.fold_delivery_counts(5000)'));
    await step('fold nothing', () => pool.query('select scanwire.fold_delivery_counts(5000)'));
}

/** Handed out and never begun; claimed and never finished; its job lost. */
async function lostWay(deliveries: DeliveryStore, step: Step): Promise<void> {
    const unbegun = await acceptOne(deliveries, step, 'accept and hand out once more', -10_000);
    await step('take back one', () => deliveries.sweep(SWEEP));
    const again = only((await deliveries.dispatch(DISPATCH)).handedOut);
    const token = randomUUID();
    await deliveries.claim([{ deliveryId: again.deliveryId, token, duration: -1 }], null);
    await step('sweep one', () => deliveries.sweep(SWEEP));
    await step('finish what was taken away', () => deliveries.recordOutcomes([success({ ...holderOf(unbegun), token })], BREAKER));

    const lost = await acceptOne(deliveries, step, 'accept and lose');
    await step('find a lost job', () => deliveries.sweep({ ...SWEEP, requeueAfter: -1_000 }));
    await deliveries.recordOutcomes([success(holderOf(lost), { begunAt: await deliveries.now() })], BREAKER);
}
