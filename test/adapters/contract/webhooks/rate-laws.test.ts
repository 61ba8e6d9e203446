import t from 'tap';
import { deploymentRateLaws, rateLaws } from '../../../../adapters/contract/webhooks/rate-laws.ts';
import { handingOut, type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Hands out nothing before the last time at which it did. */
const waitingForTheClock: Mutant = (_, deliveries) => {
    let last = 0;
    return {
        deliveries: {
            dispatch: async (options) => {
                const now = (await deliveries.now()).getTime();
                if (now < last) {
                    return { handedOut: [], waitsFor: [] };
                }
                last = now;
                return await deliveries.dispatch(options);
            },
        },
    };
};

const allAsRetries = handingOut((handedOut) => handedOut.map((one) => ({ ...one, attempt: 2 })));

const noneAsRetries = handingOut((handedOut) => handedOut.map((one) => ({ ...one, attempt: 1 })));

const MUTANTS: Mutants = {
    'hands out no more of an exporter in a second than its rate, and of others as many as there are': (exporters) => ({
        exporters: { insert: (exporter) => exporters.insert({ ...exporter, rate: null }) },
    }),
    'keeps a rate whose deliveries are no whole milliseconds apart': (exporters) => ({
        exporters: { insert: (exporter) => exporters.insert({ ...exporter, rate: 500 }) },
    }),
    'says that none are left that it may hand out while a rate is used up': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => ({ ...(await deliveries.dispatch(options)), waitsFor: ['somebody'] }) },
    }),
    'hands out nothing at once that is accepted for an exporter with a rate': (_, deliveries) => ({
        deliveries: {
            async accept(events, options) {
                const accepted = await deliveries.accept(events, options);
                const { handedOut } = await deliveries.dispatch({ window: 10, breakerAfter: 3, limit: 10 });
                return accepted.map((one) => ({ ...one, handedOut }));
            },
        },
    }),
    'counts no test, and hands it out while the rate is used up': (_, deliveries) => ({
        deliveries: {
            async dispatch(options) {
                const { handedOut, ...left } = await deliveries.dispatch(options);
                return { handedOut: handedOut.filter(({ singleAttempt }) => !singleAttempt), ...left };
            },
        },
    }),
    'goes on with a rate when the clock was set back': waitingForTheClock,
    'hands out the rest once an exporter has no rate any more': (exporters) => ({
        exporters: { update: (id, { rate: _, ...patch }) => exporters.update(id, patch) },
    }),
};

const OF_ALL: Mutants = {
    'hands out no more in a second than the rate of all together, whichever call asks': (_, deliveries) => ({
        deliveries: { dispatch: ({ rate: __, ...options }) => deliveries.dispatch(options) },
    }),
    'lets exporters take turns, and none use up the rate of all': (exporters) => ({
        exporters: { insert: (exporter) => exporters.insert({ ...exporter, rate: null }) },
    }),
    'hands out a test before all that waits for the rate of all': handingOut((handedOut) =>
        handedOut.filter(({ singleAttempt }) => !singleAttempt),
    ),
    'says that none are left that it may hand out while the rate of all is used up': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => ({ ...(await deliveries.dispatch(options)), waitsFor: ['somebody'] }) },
    }),
    'says what is left for want of places while the rate of all is not used up': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => ({ ...(await deliveries.dispatch(options)), waitsFor: [] }) },
    }),
    'gives retries a part of the rate of all, and first tries most of it': allAsRetries,
    'gives retries a part of the rate of all, and first tries most of it, where it is one delivery a second': noneAsRetries,
    'gives retries a part of the rate of all, and first tries most of it, however many exporters have both': allAsRetries,
    'gives an exporter that has but retries a part of the rate of all, whatever first tries others have': noneAsRetries,
    'goes on with the rate of all when the clock was set back': waitingForTheClock,
    'hands out the rest once there is no rate of all any more': (_, deliveries) => ({
        deliveries: { dispatch: ({ rate = 1, ...options }) => deliveries.dispatch({ ...options, rate }) },
    }),
};

proveWebhookLaws(t, rateLaws, MUTANTS);
proveWebhookLaws(t, deploymentRateLaws, OF_ALL);
