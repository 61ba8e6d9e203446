import t from 'tap';
import { dispatchLaws } from '../../../../adapters/contract/webhooks/dispatch-laws.ts';
import type { BreakerRules } from '../../../../lib/webhooks/breaker.ts';
import type { Dispatched, DispatchOptions } from '../../../../lib/webhooks/store.ts';
import { type Mutant, type Mutants, newestFirst, proveWebhookLaws, runningFast } from './mutants.ts';

const MUTANTS: Mutants = {
    'hands out what is due, once': (_, deliveries) => {
        const earlier: Dispatched[] = [];
        return {
            deliveries: {
                dispatch: async (options) => {
                    earlier.push(...(await deliveries.dispatch(options)));
                    return [...earlier];
                },
            },
        };
    },
    'keeps back what is not due': runningFast('dispatch', 1),
    'names the collector that the exporter has now': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => (await deliveries.dispatch(options)).map((one) => ({ ...one, collector: 'west' })) },
    }),
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
    'empties a backlog when several dispatch and record at once': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => (await deliveries.dispatch(options)).slice(0, 3) },
    }),
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
    'sends a failing exporter one probe, when it is due, each time later': recording((rules) => ({ maxProbe: rules.firstProbe })),
    'counts failures of attempts that began before the last one counted as one': (_, deliveries, setTime) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                // as if each attempt had begun just before its outcome: nothing is taken for part of a burst
                const now = await deliveries.now();
                await setTime(new Date(0));
                const result = await deliveries.recordOutcomes(outcomes, rules);
                await setTime(now);
                return result;
            },
        },
    }),
    'opens the window step by step after a probe was delivered, also to what waits for a retry': recording(() => ({ window: 1 })),
    'opens the breaker again at the first failure in a slow start': (_, deliveries) => {
        let delivered = false;
        return {
            deliveries: {
                recordOutcomes: async (outcomes, rules) => {
                    const changed = outcomes.map((one) => (delivered ? { ...one, health: 'none' as const } : one));
                    delivered ||= outcomes.some(({ health }) => health === 'success');
                    return await deliveries.recordOutcomes(changed, rules);
                },
            },
        };
    },
    'leaves an exporter alone that asks for it, then probes it': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => ({ ...one, pause: null })),
                    rules,
                ),
        },
    }),
    'leaves an exporter alone for as long as it asks, whatever attempts that began before come to': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => ({ ...one, pause: null })),
                    rules,
                ),
        },
    }),
    'keeps the window while failures are fewer than the breaker needs': withOptions(() => ({ breakerAfter: 1 })),
    'hands out a test of a failing exporter before its probe is due': (exporters, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const broken = (await exporters.list()).some((exporter) => exporter.consecutiveFailures >= options.breakerAfter);
                return broken ? [] : await deliveries.dispatch(options);
            },
        },
    }),
};

proveWebhookLaws(t, dispatchLaws, MUTANTS);

function withOptions(change: (options: DispatchOptions) => Partial<DispatchOptions>): Mutant {
    return (_, deliveries) => ({
        deliveries: { dispatch: (options) => deliveries.dispatch({ ...options, ...change(options) }) },
    });
}

function recording(change: (rules: BreakerRules) => Partial<BreakerRules>): Mutant {
    return (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes, { ...rules, ...change(rules) }) },
    });
}
