import { type ApiKeyStoreFixture, apiKeyAbilities, apiKeyGroups } from './api-keys-laws.ts';
import { type AuditStoreFixture, auditLaws } from './audit-laws.ts';
import { boundaryGroups } from './inventory/boundary-laws.ts';
import { deletionGroups } from './inventory/deletion-laws.ts';
import { dryRunGroups } from './inventory/dry-run-laws.ts';
import { findingGroups } from './inventory/finding-laws.ts';
import { type AnyInventoryFixture, inventoryAbilities } from './inventory/fixture.ts';
import { importGroups } from './inventory/import-laws.ts';
import { movingGroups } from './inventory/moving-laws.ts';
import { readingGroups } from './inventory/reading-laws.ts';
import { rememberingGroups } from './inventory/remembering-laws.ts';
import { removalGroups } from './inventory/removal-laws.ts';
import { replacingGroups } from './inventory/replacing-laws.ts';
import { selectingGroups } from './inventory/selecting-laws.ts';
import { textGroups } from './inventory/text-laws.ts';
import { boundedLaws, enrichingLaws, notEnrichingLaws } from './records/enriching-laws.ts';
import { type RecordStoreFixture, recordAbilities } from './records/fixture.ts';
import { countingLaws, storingLaws } from './records/storing-laws.ts';
import { type ContractTest, registerLaws, registerSuite } from './register-laws.ts';
import { acceptanceLaws, noTransactionLaws, notificationLaws, transactionLaws } from './webhooks/acceptance-laws.ts';
import { activityLaws } from './webhooks/activity-laws.ts';
import { attemptLaws } from './webhooks/attempt-laws.ts';
import { begunLaws } from './webhooks/begun-laws.ts';
import { breakerLaws } from './webhooks/breaker-laws.ts';
import { claimLaws } from './webhooks/claim-laws.ts';
import { clockLaws } from './webhooks/clock-laws.ts';
import { contentLaws, lateMessageLaws } from './webhooks/content-laws.ts';
import { countLaws, discardedCountLaws, notKeepingCountsLaws } from './webhooks/count-laws.ts';
import { deliveryLaws } from './webhooks/delivery-laws.ts';
import { discardingLaws } from './webhooks/discarding-laws.ts';
import { dispatchLaws } from './webhooks/dispatch-laws.ts';
import { erasureLaws } from './webhooks/erasure-laws.ts';
import { exporterLaws } from './webhooks/exporter-laws.ts';
import { onBench } from './webhooks/fixture.ts';
import { healthLaws, orderedHealthLaws, overviewLaws } from './webhooks/health-laws.ts';
import { chosenHoldingLaws, heldOrderLaws, holdingLaws, notHoldingLaws } from './webhooks/holding-laws.ts';
import { idempotencyLaws, joinedIdempotencyLaws, notIdempotentLaws } from './webhooks/idempotency-laws.ts';
import { noNoticesLaws, noticeLaws } from './webhooks/notice-laws.ts';
import { activityOfExportersLaws, notOfExportersLaws, ofExportersLaws, replaysOfExportersLaws } from './webhooks/of-exporters-laws.ts';
import {
    discardedOrderLaws,
    joinedOrderLaws,
    noOrderLaws,
    orderedKeyLaws,
    orderingLaws,
    retainedOrderLaws,
} from './webhooks/ordering-laws.ts';
import { outcomeLaws } from './webhooks/outcome-laws.ts';
import { outlookLaws } from './webhooks/outlook-laws.ts';
import { heldOwnerLaws, ownerLaws, replayedOwnerLaws, retainedOwnerLaws } from './webhooks/owner-laws.ts';
import { pageLaws, summaryLaws } from './webhooks/page-laws.ts';
import { pauseLaws } from './webhooks/pause-laws.ts';
import { type Queues, queueBench, queueLaws } from './webhooks/queue-laws.ts';
import { deploymentRateLaws, notRatedLaws, rateLaws } from './webhooks/rate-laws.ts';
import { releasingLaws } from './webhooks/releasing-laws.ts';
import { heldReplayLaws, replayedMessageLaws, replayLaws } from './webhooks/replay-laws.ts';
import { reservationLaws } from './webhooks/reservation-laws.ts';
import { responseLaws, retainedResponseLaws } from './webhooks/response-laws.ts';
import { retainedHeldLaws, retainedKeyLaws, retainedReplayLaws, retentionLaws } from './webhooks/retention-laws.ts';
import { settingsLaws } from './webhooks/settings-laws.ts';
import { sharingLaws } from './webhooks/sharing-laws.ts';
import { type WebhookStores, webhookAbilities } from './webhooks/stores.ts';
import { joinedSubscriptionLaws, subscriptionLaws } from './webhooks/subscription-laws.ts';
import { namingNoSilentLaws, silentSessionLaws, sweepLaws } from './webhooks/sweep-laws.ts';
import { acceptedTraceLaws, retainedTraceLaws, traceLaws } from './webhooks/trace-laws.ts';

export type { ApiKeyStoreFixture } from './api-keys-laws.ts';
export type { AuditStoreFixture } from './audit-laws.ts';
export type { InventoryFixture, InventoryRows, ReadOnlyInventoryFixture } from './inventory/fixture.ts';
export type { RecordStoreFixture } from './records/fixture.ts';
export type { ContractFixture, ContractTest } from './register-laws.ts';
export type { Queues } from './webhooks/queue-laws.ts';
export type { HostTransaction, WebhookStores } from './webhooks/stores.ts';

/**
 * Registers one test for each law of `ApiKeyStore`.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes a fixture with an empty store for one law; called once more at registration.
 *
 * @example
 * apiKeyStoreContract(test, () => ({ store: myApiKeys(pool), start: () => emptyTable(pool) }));
 */
export function apiKeyStoreContract(test: ContractTest, create: () => ApiKeyStoreFixture): void {
    registerSuite(test, create, { abilities: apiKeyAbilities, groups: apiKeyGroups });
}

/**
 * Registers one test for each law of `AuditStore`.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes a fixture with an empty store for one law.
 */
export function auditStoreContract(test: ContractTest, create: () => AuditStoreFixture | Promise<AuditStoreFixture>): void {
    registerLaws(test, create, auditLaws);
}

/**
 * Registers one test for each law of `InventoryStore` and, for a store that imports, of `InventoryWriter`. A store that only reads
 * is tested with the rows that its tables hold.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes a fixture for one law; called once more at registration.
 *
 * @example
 * inventoryContract(test, () => ({
 *     store: siteInventory(pool),
 *     rows: { workspaces: [{ id: 1, name: 'Oslo' }, { id: 2, name: 'Lima' }], hosts },
 *     openReads: () => pool.totalCount - pool.idleCount,
 * }));
 */
export function inventoryContract(test: ContractTest, create: () => AnyInventoryFixture): void {
    registerSuite(test, create, {
        abilities: inventoryAbilities,
        groups: [
            ...readingGroups,
            ...selectingGroups,
            ...removalGroups,
            ...movingGroups,
            ...replacingGroups,
            ...findingGroups,
            ...deletionGroups,
            ...dryRunGroups,
            ...boundaryGroups,
            ...rememberingGroups,
            ...textGroups,
            ...importGroups,
        ],
    });
}

/**
 * Registers one test for each law of `RecordStore`.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes a fixture for one law; called once more at registration.
 */
export function recordStoreContract(test: ContractTest, create: () => RecordStoreFixture): void {
    const groups = [
        { laws: storingLaws },
        { needs: ['counts'], laws: countingLaws },
        { needs: ['enriches'], laws: enrichingLaws },
        { needs: ['enriches', 'boundaries'], laws: boundedLaws },
        { lacks: 'enriches', laws: notEnrichingLaws },
    ] as const;
    registerSuite(test, create, { abilities: recordAbilities, groups });
}

/**
 * Registers one test for each law of an `ExporterStore`, a `DeliveryStore` and a `SettingsStore` over the same data.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes a fixture for one law; called once more at registration.
 *
 * @example
 * webhookStoresContract(test, () => memoryWebhooks());
 */
export function webhookStoresContract(test: ContractTest, create: () => WebhookStores): void {
    const laws = {
        ...exporterLaws,
        ...acceptanceLaws,
        ...dispatchLaws,
        ...sharingLaws,
        ...breakerLaws,
        ...clockLaws,
        ...pauseLaws,
        ...rateLaws,
        ...claimLaws,
        ...reservationLaws,
        ...begunLaws,
        ...outcomeLaws,
        ...outlookLaws,
        ...sweepLaws,
        ...deliveryLaws,
        ...erasureLaws,
        ...settingsLaws,
        ...healthLaws,
    };
    const groups = [
        { laws: onBench(laws) },
        { needs: ['transactions'], laws: onBench(transactionLaws) },
        { lacks: 'transactions', laws: onBench(noTransactionLaws) },
        { needs: ['transactions', 'notifications'], laws: onBench(notificationLaws) },
        { needs: ['subscriptions'], laws: onBench(subscriptionLaws) },
        { needs: ['subscriptions', 'transactions'], laws: onBench(joinedSubscriptionLaws) },
        { needs: ['subscriptions'], laws: onBench(ownerLaws) },
        { needs: ['subscriptions', 'holding'], laws: onBench(heldOwnerLaws) },
        { needs: ['subscriptions', 'replays'], laws: onBench(replayedOwnerLaws) },
        { needs: ['subscriptions', 'retention'], laws: onBench(retainedOwnerLaws) },
        { needs: ['ofExporters'], laws: onBench(ofExportersLaws) },
        { lacks: 'ofExporters', laws: onBench(notOfExportersLaws) },
        { needs: ['ofExporters', 'activity'], laws: onBench(activityOfExportersLaws) },
        { needs: ['ofExporters', 'replays'], laws: onBench(replaysOfExportersLaws) },
        { needs: ['activity'], laws: onBench(activityLaws) },
        { needs: ['content'], laws: onBench(contentLaws) },
        { needs: ['lateMessages', 'content'], laws: onBench(lateMessageLaws) },
        { needs: ['counts'], laws: onBench(countLaws) },
        { needs: ['counts', 'discarding'], laws: onBench(discardedCountLaws) },
        { lacks: 'counts', laws: onBench(notKeepingCountsLaws) },
        { needs: ['attempts'], laws: onBench(attemptLaws) },
        { needs: ['discarding'], laws: onBench(discardingLaws) },
        { needs: ['holding'], laws: onBench(holdingLaws) },
        { lacks: 'holding', laws: onBench(notHoldingLaws) },
        { needs: ['holding', 'subscriptions'], laws: onBench(chosenHoldingLaws) },
        { needs: ['overview'], laws: onBench(overviewLaws) },
        { needs: ['summaries'], laws: onBench(summaryLaws) },
        { needs: ['pages'], laws: onBench(pageLaws) },
        { needs: ['notices'], laws: onBench(noticeLaws) },
        { lacks: 'notices', laws: onBench(noNoticesLaws) },
        { needs: ['replays'], laws: onBench(replayLaws) },
        { needs: ['replays', 'subscriptions'], laws: onBench(replayedMessageLaws) },
        { needs: ['replays', 'holding'], laws: onBench(heldReplayLaws) },
        { needs: ['rate'], laws: onBench(deploymentRateLaws) },
        { lacks: 'rate', laws: onBench(notRatedLaws) },
        { needs: ['retention'], laws: onBench(retentionLaws) },
        { needs: ['retention', 'replays'], laws: onBench(retainedReplayLaws) },
        { needs: ['retention', 'holding'], laws: onBench(retainedHeldLaws) },
        { needs: ['retention', 'idempotency'], laws: onBench(retainedKeyLaws) },
        { needs: ['traces'], laws: onBench(traceLaws) },
        { needs: ['keptTraces'], laws: onBench(acceptedTraceLaws) },
        { needs: ['traces', 'retention'], laws: onBench(retainedTraceLaws) },
        { needs: ['responses'], laws: onBench(responseLaws) },
        { needs: ['responses', 'retention'], laws: onBench(retainedResponseLaws) },
        { needs: ['order'], laws: onBench(orderingLaws) },
        { needs: ['order'], laws: onBench(orderedHealthLaws) },
        { needs: ['order'], laws: onBench(releasingLaws) },
        { lacks: 'order', laws: onBench(noOrderLaws) },
        { needs: ['order', 'holding'], laws: onBench(heldOrderLaws) },
        { needs: ['order', 'idempotency'], laws: onBench(orderedKeyLaws) },
        { needs: ['order', 'retention'], laws: onBench(retainedOrderLaws) },
        { needs: ['order', 'discarding'], laws: onBench(discardedOrderLaws) },
        { needs: ['order', 'transactions'], laws: onBench(joinedOrderLaws) },
        { needs: ['silentSessions'], laws: onBench(silentSessionLaws) },
        { lacks: 'silentSessions', laws: onBench(namingNoSilentLaws) },
        { needs: ['idempotency'], laws: onBench(idempotencyLaws) },
        { lacks: 'idempotency', laws: onBench(notIdempotentLaws) },
        { needs: ['idempotency', 'transactions'], laws: onBench(joinedIdempotencyLaws) },
    ] as const;
    registerSuite(test, create, { abilities: webhookAbilities, groups });
}

/** How patient the laws of a queue are. */
export interface DeliveryQueueContractOptions {
    /** Milliseconds after which an awaited job counts as lost; 20,000 by default. */
    readonly deadline?: number;
}

/**
 * Registers one test for each law of `DeliveryQueue`.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes queues without jobs for one law; they are closed after it.
 */
export function deliveryQueueContract(
    test: ContractTest,
    create: () => Queues | Promise<Queues>,
    { deadline = 20_000 }: DeliveryQueueContractOptions = {},
): void {
    registerLaws(test, async () => queueBench(await create(), deadline), queueLaws);
}
