import { randomUUID } from 'node:crypto';
import t from 'tap';
import { at } from '../../../../adapters/contract/webhooks/fixture.ts';
import { heldReplayLaws, replayedMessageLaws, replayLaws } from '../../../../adapters/contract/webhooks/replay-laws.ts';
import type { ReplayStore } from '../../../../lib/webhooks/deliveries/replays.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Stores whose replays are wrong in some way. */
function replaying(change: (honest: ReplayStore) => Partial<ReplayStore>): Mutant {
    return (_, deliveries) => {
        const honest = deliveries.replays as ReplayStore;
        return { deliveries: { replays: { ...honest, ...change(honest) } } };
    };
}

const MUTANTS: Mutants = {
    'replays what was sent in vain since a time, and nothing else': replaying((honest) => ({
        plan: (replay) => honest.plan({ ...replay, failedSince: at(0) }),
    })),
    'replays no faster than its rate, and at most so many at once': replaying((honest) => ({ advance: () => honest.advance(100) })),
    'begins with a tenth of a second of its rate, or with one': replaying((honest) => ({
        plan: (replay) => honest.plan({ ...replay, rate: 10 * replay.rate }),
    })),
    'replays behind what is tried for the first time, and nothing twice': replaying((honest) => ({
        count: async (selection) => (await honest.list(9)).length + (await honest.count(selection)),
    })),
    'replays nothing that is sent in vain once more, and nothing that was accepted later': replaying((honest) => ({
        plan: (replay) => honest.plan({ ...replay, rate: 1_000 }),
        advance: () => honest.advance(2),
    })),
    // plans with each step anew, what has failed since too
    'replays nothing that fails after it was planned, for good or not, and never passes its total': replaying((honest) => {
        const planned: Parameters<ReplayStore['plan']>[0][] = [];
        return {
            async plan(replay) {
                planned.push(replay);
                return await honest.plan(replay);
            },
            async advance(limit) {
                const anyOpen = await honest.advance(limit);
                await Promise.all(planned.map((replay) => honest.plan({ ...replay, id: randomUUID() })));
                return anyOpen;
            },
            list: async (limit) => (await honest.list(limit)).slice(-1),
        };
    }),
    'replays nothing more once it is cancelled': replaying((honest) => ({
        cancel: async (id) =>
            ({ ...(await honest.list(9)).find((one) => one.id === id), state: 'cancelled', finishedAt: at(5_000) }) as never,
    })),
    'lists those that run, however many have begun since': replaying((honest) => ({
        list: async (limit, exporterIds) => (await honest.list(limit, exporterIds)).slice(0, limit),
    })),
    // looks among those that run
    'finds a replay by its id, also one that has ended': replaying((honest) => ({
        get: async (id) => {
            const found = await honest.get(id);
            return found.state === 'running' ? found : honest.get('ended');
        },
    })),
    'replays nothing for an exporter that was removed, and no event that was erased': (_, deliveries) => ({
        deliveries: { erase: async (id) => ({ ...((await deliveries.event(id)) as never as object), ended: 0 }) as never },
    }),
    'replays each delivery once, however many advance it': replaying((honest) => ({
        list: async (limit) => (await honest.list(limit)).map((replay) => ({ ...replay, done: replay.done + 1 })),
    })),
};

proveWebhookLaws(t, heldReplayLaws, {
    'replays what was held in the order of its acceptance, and nothing that is held later': replaying((honest) => ({
        plan: (replay) => honest.plan({ ...replay, failedSince: at(0) }),
    })),
});
proveWebhookLaws(t, replayLaws, MUTANTS);

proveWebhookLaws(t, replayedMessageLaws, {
    // makes what is replayed anew, in the format that the exporter has by then
    'replays the bytes that were sent first, whatever format the exporter has by then': (_, deliveries) => ({
        deliveries: {
            claim: async (requests, session) =>
                (await deliveries.claim(requests, session)).map((claim) =>
                    claim?.exporter.format === 'native' ? { ...claim, message: null } : claim,
                ),
        },
    }),
});
