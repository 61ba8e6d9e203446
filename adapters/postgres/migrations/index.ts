import type { Migration } from '../migrate.ts';
import { inventoryAndKeys } from './0001-inventory-and-keys.ts';
import { webhooks } from './0002-webhooks.ts';
import { records } from './0003-records.ts';
import { engine } from './0004-engine.ts';
import { previousSecrets } from './0005-previous-secrets.ts';
import { deployment } from './0006-deployment.ts';
import { stagedImports } from './0007-staged-imports.ts';
import { grants } from './0008-grants.ts';
import { scopes } from './0009-scopes.ts';
import { keyLimits } from './0010-key-limits.ts';
import { sealedUrls } from './0011-sealed-urls.ts';
import { subscriptions } from './0012-subscriptions.ts';
import { changes } from './0015-changes.ts';
import { operating } from './0016-operating.ts';
import { receiverAuthentication } from './0018-receiver-authentication.ts';
import { exporterNotices } from './0024-exporter-notices.ts';
import { heldDeliveries } from './0025-held-deliveries.ts';
import { replays } from './0026-replays.ts';
import { hostDocuments } from './0027-host-documents.ts';
import { sightings } from './0030-sightings.ts';
import { lastSuccesses } from './0035-last-successes.ts';
import { rates } from './0037-rates.ts';
import { retention } from './0038-retention.ts';
import { poisoned } from './0043-poisoned.ts';
import { replace } from './0044-replace.ts';
import { keptPlans } from './0046-kept-plans.ts';
import { alikeEvents } from './0047-alike-events.ts';
import { finishDelivered } from './0048-finish-delivered.ts';
import { order } from './0049-order.ts';
import { findings } from './0051-findings.ts';
import { findingKeys } from './0052-finding-keys.ts';
import { activity } from './0057-activity.ts';
import { audit } from './0058-audit.ts';
import { sessionless } from './0059-sessionless.ts';
import { single } from './0060-single.ts';
import { traces } from './0061-traces.ts';
import { claimsOfSessions } from './0062-claims-of-sessions.ts';
import { endsTold } from './0064-ends-told.ts';
import { listed } from './0065-listed.ts';
import { discard } from './0066-discard.ts';
import { deploymentRate } from './0067-deployment-rate.ts';
import { tombstones } from './0068-tombstones.ts';
import { addressBlocks } from './0069-address-blocks.ts';
import { activityOfEach } from './0071-activity-of-each.ts';
import { responses } from './0072-responses.ts';
import { replaysAsRetries } from './0073-replays-as-retries.ts';
import { replaysBeginSlowly } from './0074-replays-begin-slowly.ts';
import { turns } from './0075-turns.ts';
import { counts } from './0076-counts.ts';
import { exportersOfOwners } from './0077-exporters-of-owners.ts';
import { lookedUpByKey } from './0078-looked-up-by-key.ts';
import { attemptsListed } from './0079-attempts-listed.ts';
import { placesBesideRetries } from './0080-places-beside-retries.ts';
import { replaysListed } from './0081-replays-listed.ts';
import { pausesAndRemovals } from './0082-pauses-and-removals.ts';
import { chosenSingly } from './0083-chosen-singly.ts';
import { erasuresCounted } from './0084-erasures-counted.ts';
import { keysGivenBack } from './0085-keys-given-back.ts';
import { ownKeysNoted } from './0086-own-keys-noted.ts';
import { othersInFlight } from './0087-others-in-flight.ts';
import { retriesWithinRate } from './0088-retries-within-rate.ts';
import { claimsOfTheDead } from './0089-claims-of-the-dead.ts';
import { rememberedImports } from './0090-remembered-imports.ts';
import { retentionReadsLess } from './0091-retention-reads-less.ts';
import { findingsInOrder } from './0092-findings-in-order.ts';
import { retriesOutOfStep } from './0093-retries-out-of-step.ts';
import { ownersChange } from './0094-owners-change.ts';
import { acceptedForLess } from './0095-accepted-for-less.ts';
import { beatsThatFindNothing } from './0096-beats-that-find-nothing.ts';
import { quietStores } from './0097-quiet-stores.ts';
import { orderLetGo } from './0098-order-let-go.ts';
import { whatHadFailed } from './0099-what-had-failed.ts';
import { replaysCounted } from './0100-replays-counted.ts';
import { changesNumberedInTurn } from './0103-changes-numbered-in-turn.ts';
import { claimsPlannedOnce } from './0104-claims-planned-once.ts';
import { looksThatTakeLong } from './0106-looks-that-take-long.ts';
import { recoveriesForgotten } from './0107-recoveries-forgotten.ts';
import { replaysGoOn } from './0108-replays-go-on.ts';
import { claimsOfACollector } from './0109-claims-of-a-collector.ts';
import { marksKeptForLess } from './0114-marks-kept-for-less.ts';
import { retentionRemovesByPlace } from './0114-retention-removes-by-place.ts';
import { othersCountedFurther } from './0115-others-counted-further.ts';
import { marksLowered } from './0116-marks-lowered.ts';
import { timesToCome } from './0117-times-to-come.ts';
import { noneLeftOut } from './0118-none-left-out.ts';
import { bodiesAsTheyAre } from './0122-bodies-as-they-are.ts';

/** All steps in order. A new one goes to the end. */
export const migrations: readonly Migration[] = [
    inventoryAndKeys,
    webhooks,
    records,
    engine,
    previousSecrets,
    deployment,
    stagedImports,
    grants,
    scopes,
    keyLimits,
    sealedUrls,
    subscriptions,
    changes,
    operating,
    receiverAuthentication,
    exporterNotices,
    heldDeliveries,
    replays,
    hostDocuments,
    sightings,
    lastSuccesses,
    rates,
    retention,
    poisoned,
    replace,
    keptPlans,
    alikeEvents,
    finishDelivered,
    order,
    findings,
    findingKeys,
    activity,
    audit,
    sessionless,
    single,
    traces,
    claimsOfSessions,
    endsTold,
    ...listed,
    discard,
    deploymentRate,
    tombstones,
    ...addressBlocks,
    activityOfEach,
    responses,
    replaysAsRetries,
    replaysBeginSlowly,
    turns,
    counts,
    exportersOfOwners,
    lookedUpByKey,
    ...attemptsListed,
    placesBesideRetries,
    ...replaysListed,
    pausesAndRemovals,
    chosenSingly,
    erasuresCounted,
    keysGivenBack,
    ownKeysNoted,
    othersInFlight,
    retriesWithinRate,
    claimsOfTheDead,
    rememberedImports,
    retentionReadsLess,
    ...findingsInOrder,
    retriesOutOfStep,
    ownersChange,
    acceptedForLess,
    beatsThatFindNothing,
    quietStores,
    orderLetGo,
    whatHadFailed,
    replaysCounted,
    changesNumberedInTurn,
    claimsPlannedOnce,
    looksThatTakeLong,
    recoveriesForgotten,
    replaysGoOn,
    claimsOfACollector,
    marksKeptForLess,
    retentionRemovesByPlace,
    othersCountedFurther,
    marksLowered,
    timesToCome,
    noneLeftOut,
    bodiesAsTheyAre,
];
