import t from 'tap';
import { outlookLaws } from '../../../../adapters/contract/webhooks/outlook-laws.ts';
import type { DispatchResult } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Outlook } from '../../../../lib/webhooks/dispatching/outlook.ts';
import { type Mutant, type Mutants, memoryStores, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'tells with a heartbeat whether anything is in flight': (_, deliveries) => ({
        deliveries: {
            // as if what has no claim yet were nowhere
            keepAlive: async (session, duration, begun, tell) => {
                const sending = (await deliveries.list({ limit: 1, state: 'sending' })).length > 0;
                return await deliveries.keepAlive(session, duration, begun, (outlook) => tell?.({ ...outlook, inFlight: sending }));
            },
        },
    }),
    'tells that something is in flight that was handed out when it was accepted, also once a session has begun it': (_, deliveries) => {
        let reports = 0;
        return {
            deliveries: {
                keepAlive: (session, duration, begun, tell) => {
                    reports += begun === undefined ? 0 : 1;
                    return deliveries.keepAlive(session, duration, begun, (one) =>
                        tell?.({ ...one, inFlight: one.inFlight && reports === 0 }),
                    );
                },
            },
        };
    },
    'tells of which generation the settings are': telling(() => ({ settings: 0 })),
    'tells that something was accepted since': telling(() => ({ accepted: 1 })),
    'tells whether a replay is unfinished': telling(() => ({ replays: false })),
    'tells whether a notice of an exporter waits': telling(() => ({ notices: false })),
    'says when it has handed nothing out, since nothing was due, when something will be': dispatched(({ nextDueIn, ...result }) => {
        return nextDueIn === undefined ? result : { ...result, nextDueIn: null };
    }),
    'says so of an exporter that has recovered, once nothing is left that was tried before': (_, deliveries) => {
        let looks = 0;
        return {
            deliveries: {
                // as if what has recovered once were never forgotten
                dispatch: async (options) => {
                    looks += 1;
                    const { nextDueIn, ...result } = await deliveries.dispatch(options);
                    return looks > 1 || nextDueIn === undefined ? result : { ...result, nextDueIn };
                },
            },
        };
    },
    'hands out at once what was on its way when its exporter recovered, however late it fails': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                const kept = await deliveries.recordOutcomes(outcomes, rules);
                return outcomes.some(({ next }) => next.state === 'pending' && next.delay === 60_000)
                    ? await deliveries.dispatch({ window: 10, breakerAfter: rules.after, limit: 10 }).then(() => kept)
                    : kept;
            },
        },
    }),
    'does not say so while something is due for which there is no room': dispatched((result) => {
        return result.handedOut.length === 0 ? { nextDueIn: null, ...result } : result;
    }),
};

proveWebhookLaws(t, outlookLaws, MUTANTS);

t.test('the stores of these proofs do tell', async (t) => {
    const told: Outlook[] = [];
    const { deliveries } = memoryStores();
    await deliveries.keepAlive({ id: crypto.randomUUID(), process: '', slots: {} }, 1_000, undefined, (outlook) => told.push(outlook));
    t.strictSame(told, [{ settings: 0, accepted: 0, inFlight: false, replays: false, notices: false }]);
});

function telling(change: (outlook: Outlook) => Partial<Outlook>): Mutant {
    return (_, deliveries) => ({
        deliveries: {
            keepAlive: (session, duration, begun, tell) => {
                return deliveries.keepAlive(session, duration, begun, (outlook) => tell?.({ ...outlook, ...change(outlook) }));
            },
        },
    });
}

function dispatched(change: (result: DispatchResult) => DispatchResult): Mutant {
    return (_, deliveries) => ({ deliveries: { dispatch: async (options) => change(await deliveries.dispatch(options)) } });
}
