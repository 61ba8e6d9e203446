import t from 'tap';
import { dispatchLaws } from '../../../../adapters/contract/webhooks/dispatch-laws.ts';
import type { DispatchOptions, HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { handingOut, type Mutant, type Mutants, newestFirst, proveWebhookLaws, runningFast } from './mutants.ts';

const MUTANTS: Mutants = {
    'hands out what is due, once': (exporters, deliveries, setTime, begin) => {
        const earlier: HandedOut[] = [];
        return handingOut((handedOut) => {
            earlier.push(...handedOut);
            return [...earlier];
        })(exporters, deliveries, setTime, begin);
    },
    'keeps back what is not due': runningFast('dispatch', 1),
    'names the collector that the exporter has now': handingOut((handedOut) => handedOut.map((one) => ({ ...one, collector: 'west' }))),
    'fills a window per exporter and refills it': withOptions(({ window }) => ({ window: window + 1 })),
    'never hands out twice or overfills a window when several dispatch at once': (_, deliveries) => {
        let dispatching = 0;
        return {
            deliveries: {
                dispatch: async (options) => {
                    dispatching++;
                    await new Promise(setImmediate);
                    const handed = await deliveries.dispatch({ ...options, window: options.window + (dispatching > 1 ? 1 : 0) });
                    dispatching--;
                    return handed;
                },
            },
        };
    },
    'empties a backlog when several dispatch and record at once': handingOut((handedOut) => handedOut.slice(0, 3)),
    'hands out single attempts first, whatever state the exporter is in': newestFirst,
    'counts single attempts in the window': withOptions(({ window }) => ({ window: window + 1 })),
    'keeps back what a stopped exporter would receive': (exporters, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                for (const { id } of await exporters.list()) {
                    await exporters.update(id, { state: 'running' });
                }
                return await deliveries.dispatch(options);
            },
        },
    }),
    'hands out first tries before retries': newestFirst,
    'hands out older before newer': (_, deliveries, setTime) => ({
        deliveries: {
            accept: async (newEvents) => {
                await setTime(new Date(0));
                return await deliveries.accept(newEvents);
            },
        },
    }),
    'hands out no more than the limit, exporters in turn': withOptions(({ limit }) => ({ limit: limit + 1 })),
};

proveWebhookLaws(t, dispatchLaws, MUTANTS);

function withOptions(change: (options: DispatchOptions) => Partial<DispatchOptions>): Mutant {
    return (_, deliveries) => ({
        deliveries: { dispatch: (options) => deliveries.dispatch({ ...options, ...change(options) }) },
    });
}
