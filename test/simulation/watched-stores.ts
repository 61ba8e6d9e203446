import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { ReplayStore } from '../../lib/webhooks/deliveries/replays.ts';
import type { ExporterStore } from '../../lib/webhooks/exporters/exporter-store.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { DispatchLedger } from './dispatch-ledger.ts';
import type { Ledger } from './ledger.ts';
import type { ReplayLedger } from './replay-ledger.ts';

/** The stores, with everything that they are told and answer written down at the moment at which it has its effect. */
export function watched({ exporters, deliveries, settings }: WebhookStores, ledger: Ledger, replays: ReplayLedger): WebhookStores {
    return {
        exporters: watchedExporters(exporters, ledger),
        deliveries: {
            ...watchedDeliveries(deliveries, ledger),
            ...(deliveries.replays !== undefined && { replays: watchedReplays(deliveries.replays, deliveries, replays) }),
        },
        settings: {
            ...settings,
            declare: async (declared) => {
                const deployment = await settings.declare(declared);
                ledger.sessions.declared(deployment);
                return deployment;
            },
        },
    };
}

function watchedExporters(store: ExporterStore, ledger: Ledger): ExporterStore {
    return {
        ...store,
        insert: async (exporter) => {
            await store.insert(exporter);
            ledger.inserted(exporter);
        },
        update: async (id, patch) => {
            const updated = await store.update(id, patch);
            ledger.updated(updated, patch);
            return updated;
        },
        remove: async (id) => {
            const removed = await store.remove(id);
            if (removed) {
                ledger.removed(id);
            }
            return removed;
        },
    };
}

function watchedReplays(store: ReplayStore, deliveries: DeliveryStore, ledger: ReplayLedger): ReplayStore {
    return {
        ...store,
        plan: async (asked) => {
            const replay = await store.plan(asked);
            await ledger.plan(replay, deliveries);
            return replay;
        },
        advance: async (limit) => await ledger.advance(() => store.advance(limit), deliveries),
        cancel: async (id) => {
            const replay = await store.cancel(id);
            ledger.learn([replay]);
            return replay;
        },
    };
}

function watchedDeliveries(store: DeliveryStore, ledger: Ledger): DeliveryStore {
    const dispatches = new DispatchLedger(ledger);
    return {
        ...store,
        accept: async (newEvents, options) => {
            const accepted = await store.accept(newEvents, options);
            await ledger.accepted(newEvents, store);
            await dispatches.accepted(
                accepted.flatMap(({ handedOut }) => handedOut),
                store,
            );
            return accepted;
        },
        dispatch: async (options) => {
            const slots = ledger.sessions.slotsForSlow();
            const result = await store.dispatch(options);
            await dispatches.dispatched(result.handedOut, options, slots, store);
            dispatches.handedOut(result.handedOut);
            return result;
        },
        sweep: async (options) => {
            const rows = await store.sweep(options);
            await ledger.swept(options, store);
            return rows;
        },
        claim: async (requests, session, maxBytes) => {
            ledger.asked(session);
            const claims = await store.claim(requests, session, maxBytes);
            for (const [index, claim] of claims.entries()) {
                if (claim !== null) {
                    requests[index]?.keepsReservation === true ? ledger.read(claim, session) : ledger.claimed(claim, session);
                }
            }
            return claims;
        },
        recordOutcomes: async (outcomes, rules) => {
            const held = await store.recordOutcomes(outcomes, rules);
            for (const [index, outcome] of outcomes.entries()) {
                await ledger.recorded(outcome, held[index] === true, rules, store);
            }
            return held;
        },
        keepAlive: async (session, duration, begun, tell) => {
            const now = await store.keepAlive(session, duration, begun, tell);
            ledger.sessions.signed(session, duration);
            ledger.named(session.id, begun?.attempts ?? []);
            return now;
        },
        endSessions: async (ids) => {
            await store.endSessions(ids);
            ledger.sessions.signedOff(ids);
        },
        replay: async (id) => {
            const replayed = await store.replay(id);
            ledger.entries.get(id)?.replay();
            return replayed;
        },
    };
}
