import t from 'tap';
import { sharingLaws } from '../../../../adapters/contract/webhooks/sharing-laws.ts';
import type { DeliveryStore, RecordedOutcome } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../../lib/webhooks/dispatching/slot-shares.ts';
import type { Session } from '../../../../lib/webhooks/dispatching/worker-session.ts';
import { handingOut, type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'gives slow exporters half of the slots, to each its share': offering((slots) => 2 * slots),
    'gives a slow exporter all of their half when no other wants it': offering((slots) => slots / 2),
    'gives slow exporters a slot however few there are': handingOut((handedOut) => handedOut.slice(1)),
    'gives each slow exporter its turn when there are more of them than slots, however long the others wait': (
        exporters,
        deliveries,
        ...others
    ) =>
        handingOut(async (handedOut) => {
            const newest = (await exporters.list()).at(-1)?.id;
            const found = await Promise.all(handedOut.map(({ deliveryId }) => deliveries.get(deliveryId)));
            return handedOut.filter((_row, index) => found[index]?.exporterId !== newest);
        })(exporters, deliveries, ...others),
    'shares among those that have something due or in flight': offering((slots) => slots / 2),
    'gives a quick exporter what slow ones do not hold': taking(SHARES.slowAfter),
    'takes an exporter for slow after a delivery that took long': taking(0),
    'takes an exporter for slow while an attempt takes long': (_, deliveries, setTime) => ({
        deliveries: {
            dispatch: async (options) => {
                // as if every attempt had just begun
                await setTime(new Date(0));
                return await deliveries.dispatch(options);
            },
        },
    }),
    'takes an exporter for neither quick nor slow by failures that come at once, tests, or in between': taking(0),
    'counts the slots of the sessions that are alive, of each collector its own': offering((slots) => slots + 2),
    'lets exporters of other collectors have their own slots': (_, deliveries) => ({
        deliveries: { keepAlive: (session, duration) => deliveries.keepAlive({ ...session, slots: { west: 4 } }, duration) },
    }),
    'says that what an exporter has left beyond its window waits for its own end': leaving(() => []),
    'says that what is left for want of places waits for all that share them': leaving((waitsFor) => waitsFor.slice(1)),
    'says that what is left of slow exporters waits for no quick one': leaving((_, exporters) => exporters),
    'says that what is left of quick exporters for want of places waits for slow ones too': leaving((_, [quick = '']) => [quick]),
    'hands out a single attempt however much is in flight': handingOut((handedOut) => handedOut.filter((one) => !one.singleAttempt)),
    'keeps an eighth of the window for retries': (_, deliveries) => ({
        deliveries: { dispatch: (options) => deliveries.dispatch({ ...options, window: options.window - 1 }) },
    }),
    'keeps a window that is too small for it for retries in an eighth of the time': standingStillFor(800),
    'keeps it for retries in an eighth of the time too where room comes at the same part of a second again and again':
        standingStillFor(872),
};

/** Dispatches as if time went on in steps of so many milliseconds. */
function standingStillFor(milliseconds: number): Mutant {
    return (_, deliveries, setTime) => ({
        deliveries: {
            dispatch: async (options) => {
                await setTime(new Date(Math.floor((await deliveries.now()).getTime() / milliseconds) * milliseconds));
                return await deliveries.dispatch(options);
            },
        },
    });
}

/** Tells something else of what the rest waits for. */
function leaving(change: (waitsFor: readonly string[], exporters: readonly string[]) => readonly string[]): Mutant {
    return (exporters, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const { handedOut, waitsFor } = await deliveries.dispatch(options);
                const ids = (await exporters.list()).map(({ id }) => id);
                return { handedOut, waitsFor: change(waitsFor, ids) };
            },
        },
    });
}

proveWebhookLaws(t, sharingLaws, MUTANTS);

function offering(change: (slots: number) => number): Mutant {
    const changed = ({ slots, ...session }: Session): Session => ({
        ...session,
        slots: Object.fromEntries(Object.entries(slots).map(([collector, count]) => [collector, change(count)])),
    });
    return (_, deliveries) => ({
        deliveries: { keepAlive: (session, duration) => deliveries.keepAlive(changed(session), duration) },
    });
}

/** As if every attempt had taken so long. */
function taking(total: number): Mutant {
    const changed = ({ outcome, ...recorded }: RecordedOutcome): RecordedOutcome => ({
        ...recorded,
        outcome: { ...outcome, timings: { ...outcome.timings, total } },
    });
    return (_, deliveries): { readonly deliveries: Partial<DeliveryStore> } => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes.map(changed), rules) },
    });
}
