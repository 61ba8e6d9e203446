import { randomUUID } from 'node:crypto';
import t from 'tap';
import { begunLaws } from '../../../../adapters/contract/webhooks/begun-laws.ts';
import { reservationLaws } from '../../../../adapters/contract/webhooks/reservation-laws.ts';
import type {
    Acceptance,
    ClaimRequest,
    DeliveryStore,
    DispatchOptions,
    RecordedOutcome,
} from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { handingOut, type Mutant, type Mutants, proveWebhookLaws, runningFast } from './mutants.ts';

type AcceptOptions = NonNullable<Parameters<DeliveryStore['accept']>[1]>;

/** Accepts, and hands out by dispatch what has been left. */
const dispatchingAtOnce: Mutant = (_, deliveries) => ({
    deliveries: {
        accept: async (newEvents, options) => {
            const accepted = await deliveries.accept(newEvents, options);
            const { handedOut } = await deliveries.dispatch({ window: 10, breakerAfter: 3, beginWithin: 1000, limit: 100 });
            const own = (one: Acceptance) => handedOut.filter(({ deliveryId }) => one.deliveries.includes(deliveryId));
            return accepted.map((one) => ({ ...one, handedOut: [...one.handedOut, ...own(one)] }));
        },
    },
});

const alwaysHeld: Mutant = (_, deliveries) => ({
    deliveries: {
        recordOutcomes: async (outcomes, rules) => (await deliveries.recordOutcomes(outcomes, rules)).map(() => true),
    },
});

const HANDING_OUT: Mutants = {
    'hands out with its claim what is accepted while there is room': (_, deliveries) => ({
        deliveries: {
            accept: async (newEvents, options) => {
                const accepted = await deliveries.accept(newEvents, options);
                return accepted.map((one) => ({
                    ...one,
                    handedOut: one.handedOut.map(({ reservation, ...rest }) => ({
                        ...rest,
                        reservation: reservation && { ...reservation, generation: 0 },
                    })),
                }));
            },
        },
    }),
    'hands out no more at once than the window': accepting(({ handOut, ...options }) => {
        return { ...options, ...(handOut !== undefined && { handOut: { ...handOut, window: handOut.window + 1 } }) };
    }),
    'hands out no more at once than the share of the slots': (_, deliveries) => ({
        deliveries: {
            keepAlive: (session, duration) => deliveries.keepAlive({ ...session, slots: { default: 16 } }, duration),
        },
    }),
    'hands nothing out at once before what is older and due': dispatchingAtOnce,
    'hands first tries out at once beside retries that are due, and leaves an eighth of the window to those': dispatchingAtOnce,
    'hands nothing out at once to an exporter whose breaker is open, at the time of its probe neither': dispatchingAtOnce,
    'hands nothing out at once to an exporter that wants to be left alone, and to one that starts slowly': dispatchingAtOnce,
    'hands out no test at once, and nothing unless asked to': dispatchingAtOnce,
    'dispatches with claims when it is said how soon they must begin': (_, deliveries) => ({
        deliveries: { dispatch: ({ beginWithin: _, ...options }: DispatchOptions) => deliveries.dispatch(options) },
    }),
    'answers under a claim that was handed out with what is needed to send, and writes nothing': claiming((requests) =>
        requests.map((one) => ({ ...one, keepsReservation: false })),
    ),
    'answers nothing under a claim that holds no more': (exporters, deliveries) => ({
        deliveries: {
            claim: async (requests, session) => {
                for (const { id } of await exporters.list()) {
                    await exporters.update(id, { state: 'running' });
                }
                return await deliveries.claim(requests, session);
            },
        },
    }),
    'answers under claims no more than the bytes of the bodies allow': claiming((requests) => requests),
    'claims what was handed out with a claim only for who has that': (_, deliveries) => {
        const { accept, tokens } = remembering(deliveries);
        const withReservation = ({ reservation: _, ...request }: ClaimRequest): ClaimRequest => {
            const reservation = tokens.get(request.deliveryId);
            return reservation === undefined ? request : { ...request, reservation };
        };
        return { deliveries: { accept, claim: (requests, session) => deliveries.claim(requests.map(withReservation), session) } };
    },
    'counts the changes of what an exporter is sent, or whether, and no failures': (_, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const { handedOut, ...left } = await deliveries.dispatch(options);
                return {
                    handedOut: handedOut.map((one) => ({ ...one, reservation: one.reservation && { ...one.reservation, generation: 0 } })),
                    ...left,
                };
            },
            claim: async (requests, session) => {
                return (await deliveries.claim(requests, session)).map((one) => one && { ...one, generation: 0 });
            },
        },
    }),
};

const BEGINNING: Mutants = {
    'records the outcome of what began under a claim that was handed out': telling((one) => {
        return { ...one, begunAt: one.begunAt ?? new Date(0) };
    }),
    'uses up a try for a failure under it, and none for a fault of ours': telling((one) => {
        return one.next.state === 'pending' && one.next.delay === 'fault' ? { ...one, next: { state: 'pending', delay: 1000 } } : one;
    }),
    'records the outcome of one attempt under it, however often it is asked to': alwaysHeld,
    'lets one of many win that end the same attempt at once': alwaysHeld,
    'makes what a session has begun its own': (_, deliveries) => ({
        deliveries: { keepAlive: (session, duration) => deliveries.keepAlive(session, duration) },
    }),
    'makes nothing of a session whose claim holds no more': (_, deliveries) => ({
        deliveries: {
            keepAlive: async (session, duration, begun) => {
                await deliveries.keepAlive(session, duration);
                await deliveries.dispatch({ window: 10, breakerAfter: 3, limit: 100 });
                await deliveries.claim(begun?.attempts ?? [], session.id);
                return await deliveries.keepAlive(session, duration, begun);
            },
        },
    }),
    'answers a heartbeat with its time': (_, deliveries) => ({
        deliveries: { keepAlive: async (...args) => new Date((await deliveries.keepAlive(...args)).getTime() + 1) },
    }),
    'takes back what nobody has begun once it cannot begin any more': runningFast('sweep', 1),
    'takes nothing back before every session that is alive has spoken': (_, deliveries) => ({
        deliveries: {
            keepAlive: (session, duration, begun) =>
                deliveries.keepAlive(session, duration, { attempts: begun?.attempts ?? [], upTo: null }),
        },
    }),
    'waits for no session that is gone, and for a silent one when asked to': (_, deliveries) => ({
        deliveries: { sweep: (options) => deliveries.sweep({ ...options, endedOnly: false }) },
    }),
    'hands out without a claim what was taken back, until it has been claimed': handingOut((handedOut) => {
        const reservation = { token: randomUUID(), beginBy: 0, generation: 0, attemptSinceReplay: 1, settings: 0 };
        return handedOut.map((one) => ({ ...one, reservation: one.reservation ?? reservation }));
    }),
    'counts nothing for a claim that was handed out and not begun': (_, deliveries) => {
        const { accept, tokens } = remembering(deliveries);
        return {
            deliveries: {
                accept,
                sweep: async (options) => {
                    const requests = [...tokens].map(([deliveryId, reservation]) => ({
                        deliveryId,
                        token: randomUUID(),
                        duration: 0,
                        reservation,
                    }));
                    await deliveries.claim(requests, null);
                    return await deliveries.sweep(options);
                },
            },
        };
    },
    'ends a delivery that was taken back with a success, however late': telling((one) => ({ ...one, begunAt: null })),
    'ends with a late success the attempt that is being made meanwhile': telling((one) => ({ ...one, begunAt: null })),
    'only notes a failure of what was taken back, and none while another attempt is made': telling((one) => {
        return { ...one, outcome: { ...one.outcome, code: 'delivered' } };
    }),
    'hears late of several attempts of a delivery, each with a number of its own': (_, deliveries) => ({
        deliveries: {
            attempts: async (id) => (await deliveries.attempts(id)).map((one) => ({ ...one, number: Math.min(one.number, 2) })),
        },
    }),
};

proveWebhookLaws(t, { ...reservationLaws, ...begunLaws }, { ...HANDING_OUT, ...BEGINNING });

function accepting(change: (options: AcceptOptions) => AcceptOptions): Mutant {
    return (_, deliveries) => ({
        deliveries: { accept: (newEvents, options = {}) => deliveries.accept(newEvents, change(options)) },
    });
}

/** Claims something else than was asked for, whatever the bytes. */
function claiming(change: (requests: readonly ClaimRequest[]) => readonly ClaimRequest[]): Mutant {
    return (_, deliveries) => ({
        deliveries: { claim: (requests, session) => deliveries.claim(change(requests), session) },
    });
}

function telling(change: (one: RecordedOutcome) => RecordedOutcome): Mutant {
    return (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes.map(change), rules) },
    });
}

/** Accepts, and knows the tokens that deliveries were handed out with. */
function remembering(deliveries: DeliveryStore): Pick<DeliveryStore, 'accept'> & { readonly tokens: ReadonlyMap<string, string> } {
    const tokens = new Map<string, string>();
    return {
        tokens,
        accept: async (newEvents, options) => {
            const accepted = await deliveries.accept(newEvents, options);
            for (const { deliveryId, reservation } of accepted.flatMap((one) => one.handedOut)) {
                tokens.set(deliveryId, reservation?.token ?? '');
            }
            return accepted;
        },
    };
}
