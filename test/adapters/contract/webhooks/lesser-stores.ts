import { type WebhookAbility, type WebhookStores, webhookAbilities } from '../../../../adapters/contract/webhooks/stores.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { DeliveryFilter } from '../../../../lib/webhooks/deliveries/deliveries.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import { memoryStores } from './mutants.ts';

type Stores = Pick<WebhookStores, 'exporters' | 'deliveries'>;
type Lesser = { readonly exporters?: object; readonly deliveries?: object };

/** What the store does not do that says, by a word, that it does not; `said` is the word. */
const UNHEEDED: Partial<Record<WebhookAbility, { readonly said: keyof DeliveryStore; without(stores: Stores): Lesser }>> = {
    counts: {
        said: 'keepsCounts',
        without: ({ deliveries }) => ({
            deliveries: { count: async (filter: DeliveryFilter, max: number) => Math.min(max, await deliveries.count(filter, max)) },
        }),
    },
    idempotency: {
        said: 'idempotent',
        without: ({ deliveries }) => ({ deliveries: accepting(deliveries, ({ idempotency: _, ...one }) => one) }),
    },
    order: {
        said: 'ordered',
        without: ({ deliveries }) => ({ deliveries: accepting(deliveries, ({ orderKey: _, ...one }) => one) }),
    },
    rate: {
        said: 'rated',
        without: ({ deliveries }) => ({
            deliveries: {
                dispatch: ({ rate: _, ...options }: Parameters<DeliveryStore['dispatch']>[0]) => deliveries.dispatch(options),
            },
        }),
    },
    ofExporters: {
        said: 'filtersByExporters',
        without: ({ deliveries }) => ({
            deliveries: {
                list: ({ exporterIds: _, ...query }: Parameters<DeliveryStore['list']>[0]) => deliveries.list(query),
                count: ({ exporterIds: _, ...filter }: DeliveryFilter, max: number) => deliveries.count(filter, max),
            },
        }),
    },
    silentSessions: {
        said: 'namesSilent',
        without: ({ deliveries }) => ({ deliveries: { sessions: () => deliveries.sessions() } }),
    },
    holding: { said: 'holds', without: ({ exporters, deliveries }) => ({ deliveries: { accept: holdingNothing(exporters, deliveries) } }) },
};

/** What a store does not have that has no such methods, by where they are. */
const ABSENT: Partial<Record<WebhookAbility, Lesser>> = {
    subscriptions: { exporters: { subscribers: undefined } },
    summaries: { exporters: { summaries: undefined } },
    pages: { exporters: { page: undefined } },
    overview: { exporters: { overview: undefined } },
    notices: { exporters: { notices: undefined, forgetNotices: undefined } },
    activity: { deliveries: { activity: undefined } },
    attempts: { deliveries: { attemptLists: undefined } },
    content: { deliveries: { content: undefined } },
    discarding: { deliveries: { discard: undefined } },
    replays: { deliveries: { replays: undefined } },
    traces: { deliveries: { traces: undefined } },
    keptTraces: { deliveries: { traces: undefined } },
    responses: { deliveries: { responses: undefined } },
    lateMessages: { deliveries: { messages: undefined } },
    retention: { deliveries: { retention: undefined } },
};

/** The abilities that a store states by a word, and heeds then. */
export const SAID: readonly WebhookAbility[] = Object.keys(UNHEEDED) as WebhookAbility[];

/** Every ability that stores in memory have. */
export const LOSABLE: readonly WebhookAbility[] = (Object.keys(webhookAbilities) as WebhookAbility[]).filter((name) =>
    webhookAbilities[name].has(memoryStores()),
);

/** Stores in memory that do not have the ability, and do not say so either. */
export function lesserStores(ability: WebhookAbility): WebhookStores {
    const honest = memoryStores();
    const unheeded = UNHEEDED[ability];
    const { exporters, deliveries } = unheeded?.without(honest) ?? ABSENT[ability] ?? {};
    const lesser = { ...honest, exporters: { ...honest.exporters, ...exporters }, deliveries: { ...honest.deliveries, ...deliveries } };
    return unheeded === undefined ? lesser : unsaid(lesser, ability);
}

/** The same stores, which do not say any more that they have an ability of {@link SAID}. */
export function unsaid(stores: WebhookStores, ability: WebhookAbility): WebhookStores {
    const word = UNHEEDED[ability]?.said;
    return { ...stores, deliveries: { ...stores.deliveries, ...(word !== undefined && { [word]: false }) } };
}

/** What takes an ability, and may be refused by a store that does not have it. */
const TAKING: Readonly<Record<Refusable, Taking>> = {
    idempotency: { accept: ([[first]]) => first?.idempotency },
    order: { accept: ([[first]]) => first?.orderKey },
    rate: { dispatch: ([options]) => options.rate },
    ofExporters: { list: ([query]) => query.exporterIds, count: ([filter]) => filter.exporterIds },
};

type Refusable = 'idempotency' | 'order' | 'rate' | 'ofExporters';
type Taking = { readonly [Method in 'accept' | 'dispatch' | 'list' | 'count']?: (given: Parameters<DeliveryStore[Method]>) => unknown };

/** The abilities of {@link TAKING}. */
export const REFUSABLE: readonly Refusable[] = Object.keys(TAKING) as Refusable[];

/** The same stores, which refuse what takes the ability, from the first time on or after so many times. */
export function refusing(stores: WebhookStores, ability: Refusable, after = 0): WebhookStores {
    let times = 0;
    const methods = Object.entries<(given: never) => unknown>(TAKING[ability]).map(([name, taken]) => {
        const method = stores.deliveries[name as 'list'] as (...given: never[]) => Promise<unknown>;
        const refuse = async (...given: never[]): Promise<unknown> => {
            if (taken(given as never) !== undefined && ++times > after) {
                throw new ScanwireError('CONFLICT', 'It is refused');
            }
            return await method(...given);
        };
        return [name, refuse];
    });
    return { ...stores, deliveries: { ...stores.deliveries, ...Object.fromEntries(methods) } };
}

function accepting(deliveries: DeliveryStore, change: (one: NewEvent) => NewEvent): Pick<DeliveryStore, 'accept'> {
    return { accept: (newEvents, options) => deliveries.accept(newEvents.map(change), options) };
}

/** While it accepts, what an outcome has stopped is stopped as if by a user. */
function holdingNothing(exporters: ExporterStore, deliveries: DeliveryStore): DeliveryStore['accept'] {
    return async (newEvents, options) => {
        const stopped = (await exporters.list()).filter(({ stopReason }) => stopReason !== null);
        await Promise.all(stopped.map(({ id }) => exporters.update(id, { stopReason: null })));
        const accepted = await deliveries.accept(newEvents, options);
        await Promise.all(stopped.map(({ id, stopReason }) => exporters.update(id, { stopReason })));
        return accepted;
    };
}
