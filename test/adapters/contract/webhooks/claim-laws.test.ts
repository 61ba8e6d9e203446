import t from 'tap';
import { claimLaws } from '../../../../adapters/contract/webhooks/claim-laws.ts';
import { silentSessionLaws, sweepLaws } from '../../../../adapters/contract/webhooks/sweep-laws.ts';
import type { Claim, ClaimRequest, DeliveryStore, SweepOptions, SweepResult } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws, runningFast } from './mutants.ts';

const MUTANTS: Mutants = {
    'claims a queued delivery with its event and its exporter': claiming((claim) => {
        return claim && { ...claim, exporter: { ...claim.exporter, sealedHeaders: null } };
    }),
    'opens an attempt with the claim': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).filter(({ finishedAt }) => finishedAt !== null) },
    }),
    'claims nothing but what is queued': (_, deliveries) => ({
        deliveries: {
            claim: async (requests, session) => {
                await deliveries.dispatch({ window: 100, breakerAfter: 9, limit: 100 });
                return await deliveries.claim(requests, session);
            },
        },
    }),
    'answers claims in the order in which they were asked for': (_, deliveries) => ({
        deliveries: { claim: async (requests, session) => (await deliveries.claim(requests, session)).toReversed() },
    }),
    'lets one of fifty claims at once win': (_, deliveries) => {
        const won = new Map<string, Claim>();
        return {
            deliveries: {
                claim: async (requests) =>
                    (await remember(deliveries, requests, won)).map((_, n) => won.get(requests[n]?.deliveryId ?? '') ?? null),
            },
        };
    },
    'lets the first of two claims in one call win': (_, deliveries) => ({
        deliveries: { claim: async (requests, session) => (await deliveries.claim(requests.toReversed(), session)).toReversed() },
    }),
    'returns a delivery of a stopped exporter': (_, deliveries) => ({
        deliveries: {
            get: async (id) => {
                const delivery = await deliveries.get(id);
                return delivery && { ...delivery, state: 'queued' };
            },
        },
    }),
    'returns a delivery whose exporter has moved to another collector than that of its job': (_, deliveries) => ({
        deliveries: {
            claim: (requests, session) => {
                const ofAny = requests.map(({ collector, ...request }) => request);
                return deliveries.claim(ofAny, session);
            },
        },
    }),
    'claims a test of a stopped exporter': claiming((claim) => (claim?.exporter.state === 'stopped' ? null : claim)),
    'claims nothing of a removed exporter': (exporters, deliveries) => ({
        exporters: {
            remove: async (id) => {
                const { sealedSecret } = (await exporters.get(id)) ?? {};
                return sealedSecret !== undefined;
            },
        },
        deliveries,
    }),
    'counts the attempts since the last replay': claiming((claim) => claim && { ...claim, attemptSinceReplay: 1 }),
    'claims in order as many as the bytes of their bodies allow': (_, deliveries) => ({
        deliveries: { claim: (requests, session) => deliveries.claim(requests, session) },
    }),
    'takes a claim away that ran out': runningFast('sweep', -1),
    'exhausts a test whose claim ran out': (_, deliveries) => ({
        deliveries: {
            get: async (id) => {
                const delivery = await deliveries.get(id);
                return delivery?.state === 'exhausted' ? { ...delivery, state: 'pending' } : delivery;
            },
        },
    }),
    'leaves a claim alone that has not run out': runningFast('sweep', 1),
    'uses up no try for an interrupted attempt, and takes its time': claiming((claim) => {
        return claim && { ...claim, attemptSinceReplay: claim.attempt };
    }),
    'sets aside a delivery whose claims run out again and again': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: deliveries.recordOutcomes,
            list: async (query) => (await deliveries.list(query)).filter(({ state }) => state !== 'poisoned'),
        },
    }),
    'returns the ids of those that it sets aside, once': (_, deliveries) => ({
        deliveries: {
            sweep: async (options) => {
                const { lost } = await deliveries.sweep(options);
                return { lost, poisoned: (await deliveries.list({ state: 'poisoned', limit: 9 })).map(({ id }) => id) };
            },
        },
    }),
    'takes the claims of a session away that is not heard of any more': (_, deliveries) => ({
        deliveries: { claim: (requests) => deliveries.claim(requests, null) },
    }),
    'names a session that is silent where it is asked for, until it is ended': (_, deliveries) => ({
        deliveries: { sessions: () => deliveries.sessions() },
    }),
    'says of a session whether its process opens sealed URLs': (_, deliveries) => ({
        deliveries: { sessions: async () => (await deliveries.sessions()).map((session) => ({ ...session, opensUrls: true })) },
    }),
    'says of a session for which collectors it sends, and how many attempts at once': (_, deliveries) => ({
        deliveries: { sessions: async () => (await deliveries.sessions()).map((session) => ({ ...session, slots: { default: 3 } })) },
    }),
    'ends a session': (_, deliveries) => ({ deliveries: { endSessions: async () => await deliveries.endSessions([]) } }),
    'counts no failure for an interrupted attempt': (exporters, deliveries) => ({
        exporters: {
            get: async (id) => {
                const exporter = await exporters.get(id);
                const swept = (await deliveries.list({ limit: 9 })).some(({ lastCode }) => lastCode === 'interrupted');
                return exporter && { ...exporter, consecutiveFailures: swept ? 1 : 0 };
            },
        },
    }),
    'returns jobs that were queued too long ago': sweeping(({ requeueAfter }) => ({ requeueAfter: requeueAfter - 1 })),
    'takes only the claims of ended sessions away when asked to': sweeping(() => ({ endedOnly: false })),
    'sweeps no more than the limit, and ten times as many claims': sweeping(({ limit }) => ({ limit: limit + 1 })),
    'finds each lost claim and job once when several sweep at once': (_, deliveries) => {
        let first: Promise<SweepResult> | undefined;
        return {
            deliveries: {
                sweep: (options) => {
                    first ??= deliveries.sweep(options);
                    return first;
                },
            },
        };
    },
};

proveWebhookLaws(t, { ...claimLaws, ...sweepLaws, ...silentSessionLaws }, MUTANTS);

function claiming(change: (claim: Claim | null) => Claim | null): Mutant {
    return (_, deliveries) => ({
        deliveries: { claim: async (requests, session) => (await deliveries.claim(requests, session)).map(change) },
    });
}

async function remember(deliveries: DeliveryStore, requests: readonly ClaimRequest[], won: Map<string, Claim>) {
    const claims = await deliveries.claim(requests, null);
    for (const claim of claims) {
        if (claim !== null) {
            won.set(claim.deliveryId, claim);
        }
    }
    return claims;
}

function sweeping(change: (options: SweepOptions) => Partial<SweepOptions>): Mutant {
    return (_, deliveries) => ({
        deliveries: { sweep: (options) => deliveries.sweep({ ...options, ...change(options) }) },
    });
}
