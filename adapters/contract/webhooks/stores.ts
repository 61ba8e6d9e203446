import type { Executor } from '../../../lib/transaction.ts';
import type { DeliveryStore } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { SettingsStore } from '../../../lib/webhooks/deployment-settings.ts';
import type { ExporterStore } from '../../../lib/webhooks/exporters/exporter-store.ts';
import type { Ability, ContractFixture } from '../register-laws.ts';

/** A transaction of the application, on a connection of its own. */
export interface HostTransaction {
    readonly tx: Executor;
    commit(): Promise<void>;
    rollback(): Promise<void>;
}

/** The stores under test, over the same data; empty once started. */
export interface WebhookStores extends ContractFixture {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    readonly settings: SettingsStore;
    /** Sets the store's time, which stands still until it is set again. It begins wherever the store likes. */
    readonly setTime: (time: Date) => void | Promise<void>;
    /** Opens a transaction of the application; needed where `deliveries.transactions` is true. */
    readonly begin?: () => Promise<HostTransaction>;
}

/** Name of something that not every pair of webhook stores can do. */
export type WebhookAbility =
    | 'activity'
    | 'attempts'
    | 'ofExporters'
    | 'transactions'
    | 'notifications'
    | 'subscriptions'
    | 'content'
    | 'counts'
    | 'discarding'
    | 'idempotency'
    | 'keptTraces'
    | 'lateMessages'
    | 'notices'
    | 'holding'
    | 'order'
    | 'overview'
    | 'pages'
    | 'summaries'
    | 'rate'
    | 'replays'
    | 'responses'
    | 'retention'
    | 'silentSessions'
    | 'traces';

/** What the laws of webhook stores may need. */
export const webhookAbilities: Readonly<Record<WebhookAbility, Ability<WebhookStores>>> = {
    transactions: {
        has: ({ deliveries }) => deliveries.transactions,
        shows: ({ begin }) => begin !== undefined,
        supply: 'begin(), which opens a transaction of the application',
    },
    notifications: {
        has: ({ deliveries }) => deliveries.listen !== undefined,
        shows: ({ begin }) => begin !== undefined,
        supply: 'begin(), which opens a transaction of the application',
    },
    subscriptions: { has: ({ exporters }) => exporters.subscribers !== undefined, shows: () => true, supply: 'nothing' },
    ofExporters: { has: ({ deliveries }) => deliveries.filtersByExporters === true, shows: () => true, supply: 'nothing' },
    activity: { has: ({ deliveries }) => deliveries.activity !== undefined, shows: () => true, supply: 'nothing' },
    attempts: { has: ({ deliveries }) => deliveries.attemptLists !== undefined, shows: () => true, supply: 'nothing' },
    counts: { has: ({ deliveries }) => deliveries.keepsCounts === true, shows: () => true, supply: 'nothing' },
    content: { has: ({ deliveries }) => deliveries.content !== undefined, shows: () => true, supply: 'nothing' },
    discarding: { has: ({ deliveries }) => deliveries.discard !== undefined, shows: () => true, supply: 'nothing' },
    replays: { has: ({ deliveries }) => deliveries.replays !== undefined, shows: () => true, supply: 'nothing' },
    traces: { has: ({ deliveries }) => deliveries.traces !== undefined, shows: () => true, supply: 'nothing' },
    keptTraces: { has: ({ deliveries }) => deliveries.traces?.keptByAccept === true, shows: () => true, supply: 'nothing' },
    responses: { has: ({ deliveries }) => deliveries.responses !== undefined, shows: () => true, supply: 'nothing' },
    lateMessages: { has: ({ deliveries }) => deliveries.messages !== undefined, shows: () => true, supply: 'nothing' },
    retention: { has: ({ deliveries }) => deliveries.retention !== undefined, shows: () => true, supply: 'nothing' },
    idempotency: { has: ({ deliveries }) => deliveries.idempotent === true, shows: () => true, supply: 'nothing' },
    holding: { has: ({ deliveries }) => deliveries.holds === true, shows: () => true, supply: 'nothing' },
    rate: { has: ({ deliveries }) => deliveries.rated === true, shows: () => true, supply: 'nothing' },
    order: { has: ({ deliveries }) => deliveries.ordered === true, shows: () => true, supply: 'nothing' },
    silentSessions: { has: ({ deliveries }) => deliveries.namesSilent === true, shows: () => true, supply: 'nothing' },
    summaries: { has: ({ exporters }) => exporters.summaries !== undefined, shows: () => true, supply: 'nothing' },
    pages: { has: ({ exporters }) => exporters.page !== undefined, shows: () => true, supply: 'nothing' },
    overview: { has: ({ exporters }) => exporters.overview !== undefined, shows: () => true, supply: 'nothing' },
    notices: { has: ({ exporters }) => exporters.notices !== undefined, shows: () => true, supply: 'nothing' },
};
