import pg from 'pg';
import type { Test } from 'tap';
import { webhookStoresContract } from '../../../../adapters/contract/index.ts';
import type { WebhookStores } from '../../../../adapters/contract/webhooks/stores.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import type { DeliveryStore, DispatchOptions, HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { SettingsStore } from '../../../../lib/webhooks/deployment-settings.ts';
import type { NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import { migratedDatabase } from '../../../support/migrated-database.ts';
import { mapValues, proveLaws } from '../laws.ts';

interface Fault {
    readonly exporters?: Partial<ExporterStore>;
    readonly deliveries?: Partial<DeliveryStore>;
    readonly settings?: Partial<SettingsStore>;
}

/** Makes one thing wrong in honest stores: the methods that it gives replace theirs. `setTime` sets the time of honest ones. */
export type Mutant = (
    exporters: ExporterStore,
    deliveries: DeliveryStore,
    setTime: WebhookStores['setTime'],
    settings: SettingsStore,
) => Fault;

/** By the name of the law that must catch it. */
export type Mutants = Readonly<Record<string, Mutant>>;

/** Proves laws of webhook stores, by stores in memory unless `honest` makes others. */
export function proveWebhookLaws(t: Test, laws: object, mutants: Mutants, honest: () => WebhookStores = memoryStores): void {
    const broken = mapValues(mutants, (mutant) => () => withFault(honest(), mutant));
    proveLaws(t, webhookStoresContract, Object.keys(laws), broken, /./);
}

/** Honest stores in memory, whose time is set. */
export function memoryStores(): WebhookStores {
    let now = new Date();
    return {
        ...memoryWebhooks({ clock: () => now }),
        setTime(time) {
            now = time;
        },
    };
}

function withFault(honest: WebhookStores, mutant: Mutant): WebhookStores {
    const { exporters, deliveries, settings } = mutant(honest.exporters, honest.deliveries, honest.setTime, honest.settings);
    return {
        ...honest,
        exporters: { ...honest.exporters, ...exporters },
        deliveries: { ...honest.deliveries, ...deliveries },
        settings: { ...honest.settings, ...settings },
    };
}

/** Takes the time for so many milliseconds later than it is in one of its methods, if the options say so. */
export function runningFast<Name extends 'dispatch' | 'sweep'>(name: Name, milliseconds: number): Mutant {
    return (_, deliveries, setTime) => ({
        deliveries: {
            [name]: async (options: never) => {
                const now = await deliveries.now();
                await setTime(new Date(now.getTime() + milliseconds));
                const result = await deliveries[name](options);
                await setTime(now);
                return result;
            },
        },
    });
}

/** Hands out something else than what was dispatched. */
export function handingOut(
    change: (handedOut: readonly HandedOut[], options: DispatchOptions) => readonly HandedOut[] | Promise<readonly HandedOut[]>,
): Mutant {
    return (_, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const result = await deliveries.dispatch(options);
                return { ...result, handedOut: await change(result.handedOut, options) };
            },
        },
    });
}

/** Hands out what comes last in the right order. */
export const newestFirst: Mutant = handingOut((handedOut) => handedOut.toReversed());

/** A pool for stores that join transactions, of a database of the test's own. */
export async function migratedPool(t: Test): Promise<pg.Pool> {
    const { url, drop } = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {}); // the pool has ended before its connections have
    t.after(async () => {
        await pool.end();
        await drop();
    });
    return pool;
}

/** Accepts something else than what it is given. */
export function rewriting(deliveries: DeliveryStore, change: (one: NewEvent) => NewEvent): Pick<DeliveryStore, 'accept'> {
    return { accept: (newEvents, options) => deliveries.accept(newEvents.map(change), options) };
}

/** Leaves a transaction of the application broken when it refuses: a statement that fails takes the whole transaction with it. */
export function breakingTransactions(deliveries: DeliveryStore): Pick<DeliveryStore, 'accept'> {
    return {
        accept: async (newEvents, options) => {
            try {
                return await deliveries.accept(newEvents, options);
            } catch (error) {
                await options?.tx?.query('select 1 / 0').catch(() => {});
                throw error;
            }
        },
    };
}
