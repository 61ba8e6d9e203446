import t from 'tap';
import { rateLaws } from '../../../../adapters/contract/webhooks/rate-laws.ts';
import { type Mutants, proveWebhookLaws } from './mutants.ts';

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
    'hands out the rest once an exporter has no rate any more': (exporters) => ({
        exporters: { update: (id, { rate: _, ...patch }) => exporters.update(id, patch) },
    }),
};

proveWebhookLaws(t, rateLaws, MUTANTS);
