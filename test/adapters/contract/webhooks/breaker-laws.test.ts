import t from 'tap';
import { breakerLaws } from '../../../../adapters/contract/webhooks/breaker-laws.ts';
import { at } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { BreakerRules } from '../../../../lib/webhooks/outcomes/breaker.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
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
    'counts no failure of an attempt that was handed out before the breaker opened': (_, deliveries, setTime) => ({
        deliveries: {
            claim: async (...args) => {
                // as if each attempt were a probe
                const now = await deliveries.now();
                await setTime(at(3_600_000));
                const claims = await deliveries.claim(...args);
                await setTime(now);
                return claims;
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
    'stops an exporter that has asked to be left alone for too long and has taken nothing': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: (outcomes, rules) => {
                const onlyPauses = outcomes.every(({ health }) => health === 'none');
                return deliveries.recordOutcomes(outcomes, { ...rules, ...(onlyPauses && { stopAfter: Number.MAX_SAFE_INTEGER }) });
            },
        },
    }),
    'stops no exporter that asks to be left alone and has taken something between': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => (one.health === 'success' ? { ...one, health: 'none' as const } : one)),
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
    'opens the breaker when the probe after a pause fails': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                const afterPause = (await deliveries.now()) > at(600);
                const changed = outcomes.map((one) => (afterPause ? { ...one, health: 'none' as const } : one));
                return await deliveries.recordOutcomes(changed, rules);
            },
        },
    }),
    'keeps the window while failures are fewer than the breaker needs': (_, deliveries) => ({
        deliveries: { dispatch: (options) => deliveries.dispatch({ ...options, breakerAfter: 1 }) },
    }),
    'hands out a test of a failing exporter before its probe is due': (exporters, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const broken = (await exporters.list()).some((exporter) => exporter.consecutiveFailures >= options.breakerAfter);
                return broken ? { handedOut: [], waitsFor: [] } : await deliveries.dispatch(options);
            },
        },
    }),
};

proveWebhookLaws(t, breakerLaws, MUTANTS);

function recording(change: (rules: BreakerRules) => Partial<BreakerRules>): Mutant {
    return (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes, { ...rules, ...change(rules) }) },
    });
}
