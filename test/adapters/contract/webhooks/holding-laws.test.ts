import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { webhookStoresContract } from '../../../../adapters/contract/index.ts';
import { chosenHoldingLaws, holdingLaws } from '../../../../adapters/contract/webhooks/holding-laws.ts';
import type { WebhookStores } from '../../../../adapters/contract/webhooks/stores.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { lawsOf } from '../laws.ts';
import { type Mutant, type Mutants, memoryStores, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'holds what is accepted for an exporter that an outcome has stopped, and sends none of it': accepting(replayAll),
    'hands out at once nothing that it holds': (_, deliveries) => ({
        deliveries: {
            accept: async (newEvents, options) => {
                const accepted = await deliveries.accept(newEvents, options);
                const handedOut = { exporterId: '', collector: '', attempt: 1, singleAttempt: false, reservation: null };
                return accepted.map((one) => ({ ...one, handedOut: one.deliveries.map((deliveryId) => ({ ...handedOut, deliveryId })) }));
            },
        },
    }),
    'sends what it held once that is replayed': (_, deliveries) => ({
        deliveries: { replay: async (id) => present(await deliveries.get(id)) },
    }),
    'holds nothing for an exporter that a user has stopped': (exporters) => ({
        exporters: {
            // forgets who has stopped it
            update: (id, { stopReason: _, ...patch }) => exporters.update(id, patch),
        },
    }),
    'hands out a test of an exporter that an outcome has stopped': (exporters, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const stopped = (await exporters.list()).some(({ state }) => state === 'stopped');
                return stopped ? { handedOut: [], waitsFor: [] } : await deliveries.dispatch(options);
            },
        },
    }),
    'ends what it held with its exporter and with its event': (_, deliveries) => ({
        deliveries: { erase: async (id) => ({ ...(await deliveries.erase(id)), ended: 0 }) },
    }),
};

const MUTANTS_OF_CHOICES: Mutants = {
    'holds what an exporter has chosen that an outcome has stopped': (_, deliveries) => ({
        deliveries: {
            // passes by those who chose, as if a user had stopped them
            accept: async (newEvents, options) => {
                const accepted = await deliveries.accept(newEvents, options);
                const withHeld = await Promise.all(accepted.map(async (one) => ({ one, held: await isHeld(deliveries, one.deliveries) })));
                return withHeld.map(({ one, held }, index) => {
                    const { recipients } = present(newEvents[index]);
                    return held && 'types' in recipients && recipients.subscribers !== undefined ? { ...one, deliveries: [] } : one;
                });
            },
        },
    }),
};

proveWebhookLaws(t, holdingLaws, MUTANTS);
proveWebhookLaws(t, chosenHoldingLaws, MUTANTS_OF_CHOICES);

t.test('asks nothing about choices of stores that keep none', async (t) => {
    const honest = memoryStores();
    const lesser = { ...honest, exporters: { ...honest.exporters, subscribers: undefined } } as unknown as WebhookStores;
    for (const [stores, asked] of [
        [honest, true],
        [lesser, false],
    ] as const) {
        const laws = lawsOf(webhookStoresContract, () => stores);
        t.ok(Object.keys(holdingLaws).every((name) => laws.has(name)));
        t.same(
            Object.keys(chosenHoldingLaws).map((name) => laws.has(name)),
            [asked],
        );
    }
});

/** Does something more with what was accepted. */
function accepting(more: (deliveries: DeliveryStore, ids: readonly string[]) => Promise<void>): Mutant {
    return (_, deliveries) => ({
        deliveries: {
            accept: async (newEvents, options) => {
                const accepted = await deliveries.accept(newEvents, options);
                await more(
                    deliveries,
                    accepted.flatMap((one) => one.deliveries),
                );
                return accepted;
            },
        },
    });
}

async function isHeld(deliveries: DeliveryStore, ids: readonly string[]): Promise<boolean> {
    const rows = await Promise.all(ids.map((id) => deliveries.get(id)));
    return rows.some((row) => row?.state === 'held');
}

/** As if it had never been held. */
async function replayAll(deliveries: DeliveryStore, ids: readonly string[]): Promise<void> {
    for (const id of ids) {
        if ((await deliveries.get(id))?.state === 'held') {
            await deliveries.replay(id);
        }
    }
}
