import { ScanwireError } from '../../errors.ts';
import type { KeyRing, Resealed } from '../../keys/key-ring.ts';
import { checked } from '../../schema-validation.ts';
import { countIn, type DeliveryCount } from '../deliveries/kept-counts.ts';
import { RESERVATION_TIMES } from '../dispatching/reservations.ts';
import { checkSecret, generateSecret, unsealSecrets } from '../messages/signing-secret.ts';
import { isSchedule } from '../outcomes/retry-schedule.ts';
import { storeRefusals } from '../store-refusals.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import {
    type CheckedExporterSettings,
    type Exporter,
    type NewExporterSettings,
    newExporterSchema,
    type StoredExporter,
} from './exporter.ts';
import { type ShownExporter, withHealth } from './exporter-health.ts';
import { allOf, type ExporterLists, exporterLists, ownerQuerySchema, type SummaryQuery } from './exporter-lists.ts';
import {
    type ExporterChanges,
    type ExporterPatch,
    exporterChangesSchema,
    exporterToStore,
    ownersPatchOf,
    patchOf,
    undoing,
} from './exporter-patch.ts';
import { type ExporterQuestions, exporterQuestions } from './exporter-preview.ts';
import { resealExporters } from './exporter-resealing.ts';
import { assertCollector, assertOwnerMay, storedWithinOwnerLimit } from './owner-limits.ts';
import { type ReceiverWarning, receiverWarnings } from './receiver-url.ts';
import { knownUrl, shownUrl, shownUrls, unsealUrl } from './sealed-url.ts';
import { sendTest, type TestOptions, type TestResult } from './test-event.ts';

/** An exporter after a change, with the result of the `test` that the change sent. */
export interface ChangedExporter {
    readonly exporter: Exporter;
    readonly test: TestResult;
    /** What is doubtful about its receiver. */
    readonly warnings: readonly ReceiverWarning[];
}

/** An exporter that was started. */
export interface StartedExporter extends ChangedExporter {
    /** What was held for it while an outcome had stopped it. It is sent only once it is replayed. */
    readonly held: DeliveryCount;
}

/** An exporter that was created, with its signing secret. */
export interface CreatedExporter {
    readonly exporter: Exporter;
    readonly secret: string;
    /** What is doubtful about its receiver. */
    readonly warnings: readonly ReceiverWarning[];
}

/** Who makes an exporter, or changes it. */
export interface CreateOptions {
    /** Whether its owner asks for it, who may loosen nothing that is for the operator to give. False by default. */
    readonly asOwner?: boolean | undefined;
}

/** How an exporter is changed. */
export interface UpdateOptions extends CreateOptions, TestOptions {}

/** Configured receivers. Methods reject with ScanwireError `NOT_FOUND` for an unknown id and `UNAVAILABLE` without a store. */
export interface Exporters extends ExporterLists, ExporterQuestions {
    /** A stopped exporter and its signing secret. @throws ScanwireError `INVALID_INPUT` with the field. */
    create(settings: NewExporterSettings, options?: CreateOptions): Promise<CreatedExporter>;
    /** Oldest first; of one owner only, where that is named. @throws ScanwireError `INVALID_INPUT`. */
    list(query?: Pick<SummaryQuery, 'owner'>): Promise<readonly Exporter[]>;
    get(id: string): Promise<Exporter>;
    /**
     * The exporter and how it fares.
     *
     * @param options.showUrl With the whole URL of its receiver, which may hold a token. @throws ScanwireError `UNSEALABLE`, then, where the key ring
     *     cannot unseal it.
     */
    show(id: string, options?: { readonly showUrl?: boolean }): Promise<ShownExporter>;
    /** The signing secret, for the admin console (`plugins/admin-console`) to show. @throws ScanwireError `UNSEALABLE`. */
    secret(id: string): Promise<string>;
    /**
     * Changes what is named and sends a `test`. A URL of another origin needs `headers` or `keepHeaders` where the exporter has additional headers,
     * and the same goes for `formatSecret`, `basic`, `clientCertificate` and `oauth`, and for a proxy that can read what it could not before. A secret that is changed stays valid for a day, or for
     * `overlap`, in the signature forms that can carry several; the same secret once more changes nothing.
     *
     * @throws ScanwireError `INVALID_INPUT`, `CONFLICT` for a change of type or of owner that is not allowed.
     */
    update(id: string, changes: ExporterChanges, options?: UpdateOptions): Promise<ChangedExporter>;
    /** Starts an exporter: from now on events go to it, and its `pending` deliveries are sent; `held` ones only once they are replayed. Sends a `test`. */
    start(id: string, options?: TestOptions): Promise<StartedExporter>;
    /** Stops an exporter: new events do not go to it, and accepted deliveries wait in their rows. Sends a `test`, and waits only a moment for its outcome. */
    stop(id: string): Promise<ChangedExporter>;
    /**
     * Pauses an exporter: events are accepted for it as before, but wait. Nothing but a `test` is sent until it is resumed, even if it is stopped
     * and started meanwhile. What is being sent goes on.
     */
    pause(id: string): Promise<Exporter>;
    /**
     * Ends the pause: what waits is sent, unless the exporter is stopped as well. The time of the pause does not count as time for which the
     * exporter failed.
     */
    resume(id: string): Promise<Exporter>;
    /** Sends a `test` and waits for its outcome. */
    test(id: string, options?: TestOptions): Promise<TestResult>;
    /** Removes it with its secrets; its deliveries that have not ended, `held` ones too, are cancelled. */
    remove(id: string): Promise<void>;
    /**
     * Takes a batch of exporters, and seals with the current key of the ring what another key has sealed for them. Once no exporter is left, the
     * other key can be removed. Deliveries go on meanwhile, and the work may be cut off at any time: every text is always sealed with some key of
     * the ring.
     *
     * @param after `next` of the batch before; from the beginning when absent.
     */
    sealAnew(after?: string | null): Promise<Resealed>;
}

/** How long the outcome of a `test` is waited for on stop, which nothing may delay. Milliseconds. */
const STOP_TEST_TIMEOUT = 200;

/** How often a change is tried when others change the same exporter at the same time, each time with what is stored by then. */
const MAX_CHANGES_AT_ONCE = 5;

/** The exporters of a store. */
export function exporters(context: WebhooksContext): Exporters {
    const { exporters: store, deliveries, keyRing } = context;
    const listed = listing(keyRing);
    const lists = exporterLists(context, (exporter) => visible(exporter, keyRing));

    const patience = ({ wait = true }: TestOptions = {}): number => (wait ? context.claimDuration : 0);

    async function stored(id: string): Promise<StoredExporter> {
        const exporter = await store.get(id);
        if (exporter === null) {
            throw storeRefusals.unknownExporter();
        }

        return exporter;
    }

    async function changed(
        exporter: StoredExporter,
        { testTimeout, url }: { readonly testTimeout: number; readonly url?: string | undefined },
    ): Promise<ChangedExporter> {
        const warnings = await warningsOf(exporter, url, context);
        const [test] = await Promise.all([sendTest(exporter, testTimeout, context), olderSettingsGone(exporter.id, context)]);
        return { exporter: visible(exporter, keyRing), test, warnings };
    }

    const update = changing(stored, context, lists);

    return {
        async create(settings, { asOwner = false } = {}) {
            const valid = checkedNew(settings, asOwner);
            const secret = checkSecret(valid.secret ?? generateSecret());
            const exporter = await exporterToStore(valid, secret, context);
            assertCollector(exporter, context);
            const acquisition = { owner: exporter.owner, store: () => store.insert(exporter), undo: () => store.remove(exporter.id) };
            await storedWithinOwnerLimit(context, acquisition, lists);
            return { exporter: visible(exporter, keyRing), secret, warnings: await warningsOf(exporter, valid.url, context) };
        },

        list: async (query) => listed(await allOf(store, checked(ownerQuerySchema, query))),
        ...lists,
        get: async (id) => visible(await stored(id), keyRing),

        async show(id, { showUrl = false } = {}) {
            const found = await stored(id);
            const exporter = { ...visible(found, keyRing), ...(showUrl && { url: unsealUrl(found, keyRing) }) };
            const health = await store.health(id);
            if (health === null) {
                throw storeRefusals.unknownExporter();
            }

            return withHealth(exporter, health, context.breakerRules);
        },

        async secret(id) {
            return unsealSecrets(await stored(id), keyRing, await deliveries.now())[0];
        },

        async update(id, changes, options) {
            const valid = checked(exporterChangesSchema, changes, { subject: 'Exporter' });
            return changed(await update(id, valid, options?.asOwner), { testTimeout: patience(options), url: valid.url });
        },

        async start(id, options) {
            // Before anything is changed: what has been done is no failure.
            const held = await countIn(deliveries, { exporterId: id, state: 'held' });
            const started = await store.update(id, { state: 'running', stopReason: null });
            return { ...(await changed(started, { testTimeout: patience(options) })), held };
        },

        async stop(id) {
            return changed(await store.update(id, { state: 'stopped', stopReason: null }), { testTimeout: STOP_TEST_TIMEOUT });
        },

        ...pausing(stored, context),

        async test(id, options) {
            return sendTest(await stored(id), patience(options), context);
        },

        ...exporterQuestions(stored, context),

        async remove(id) {
            if (!(await store.remove(id))) {
                throw storeRefusals.unknownExporter();
            }
            await olderSettingsGone(id, context);
        },

        sealAnew: (after = null) => resealExporters(context, after),
    };
}

function checkedNew(settings: NewExporterSettings, asOwner: boolean): CheckedExporterSettings {
    const valid = checked(newExporterSchema, settings, { subject: 'Exporter' });
    if (asOwner) {
        assertOwnerMay(valid);
    }
    return valid;
}

/**
 * Stores changes. If somebody else has changed the exporter meanwhile, it is tried again with what is stored by then, so that neither change
 * is lost.
 */
function changing(stored: (id: string) => Promise<StoredExporter>, context: WebhooksContext, lists: ExporterLists) {
    const { exporters: store, dispatcher } = context;

    /** Stores it while the exporter is of the owner by whose limits it was checked. */
    async function storePatch(before: StoredExporter, patch: ExporterPatch): Promise<StoredExporter> {
        const { id, owner } = before;
        const acquisition = {
            owner: patch.owner ?? null,
            store: () => store.update(id, { ...patch, expectedOwner: owner }),
            undo: () => store.update(id, undoing(patch, before)),
        };
        const changed = await storedWithinOwnerLimit(context, acquisition, lists);
        // It may be sent more, or in another order.
        dispatcher.wake();
        return changed;
    }

    return async function update(
        id: string,
        changes: ExporterChanges,
        asOwner = false,
        tries: number = MAX_CHANGES_AT_ONCE,
    ): Promise<StoredExporter> {
        const before = await stored(id);
        // An owner's change is none of what another owner has by now.
        const asked = asOwner ? { owner: before.owner, ...changes } : changes;
        const patch = await (asOwner ? ownersPatchOf : patchOf)(before, asked, context);
        try {
            return Object.keys(patch).length === 0 ? before : await storePatch(before, patch);
        } catch (error) {
            if (tries > 1 && error instanceof ScanwireError && error.code === 'CONFLICT' && error.field !== 'owner') {
                return await update(id, asked, asOwner, tries - 1);
            }
            throw error;
        }
    };
}

/** How an exporter is paused. Its settings stay as they are: no `test` is sent. */
function pausing(stored: (id: string) => Promise<StoredExporter>, context: WebhooksContext): Pick<Exporters, 'pause' | 'resume'> {
    const { exporters: store, deliveries, dispatcher, keyRing } = context;
    return {
        async pause(id) {
            const before = await stored(id);
            const paused = before.pausedAt === null ? await store.update(id, { pausedAt: await deliveries.now() }) : before;
            await olderSettingsGone(id, context);
            return visible(paused, keyRing);
        },

        async resume(id) {
            const resumed = await store.update(id, { pausedAt: null });
            dispatcher.wake();
            return visible(resumed, keyRing);
        },
    };
}

/**
 * What is doubtful about the receiver of an exporter. `givenUrl` is the URL as a person has just typed it, if any. To find exporters with the
 * same URL, their URLs are unsealed and compared: a digest in the row would show to everybody which ones are the same.
 */
async function warningsOf(
    exporter: StoredExporter,
    givenUrl: string | undefined,
    { exporters: store, keyRing }: WebhooksContext,
): Promise<readonly ReceiverWarning[]> {
    // An exporter that has an owner is compared only with those of the same owner: no event goes to exporters of two owners, so that no receiver
    // gets one twice, and an owner must not learn of another's receivers.
    const comparable = await allOf(store, exporter.owner === null ? {} : { owner: exporter.owner });
    const others = comparable.map((other) => ({ id: other.id, url: knownUrl(other, keyRing) }));
    return receiverWarnings({ ...exporter, url: knownUrl(exporter, keyRing) ?? '' }, givenUrl, others);
}

/**
 * Resolves once no further attempt begins with older settings of the exporter: this process has forgotten them, and the reservations that other
 * processes got together with them have run out. Attempts that are under way finish with the settings that they began with.
 */
async function olderSettingsGone(id: string, { messageCache, session, sleep }: WebhooksContext): Promise<void> {
    await messageCache.forgetSettings(id);
    if (await session.hasOthers().catch(() => true)) {
        await sleep(RESERVATION_TIMES.beginWithin);
    }
}

/** An exporter without what only the sender may see. */
function visible(exporter: StoredExporter, keyRing: KeyRing): Exporter {
    return withoutSecrets(exporter, shownUrl(knownUrl(exporter, keyRing)));
}

/** What everybody may see of the exporters of a list. */
function listing(keyRing: KeyRing): (all: readonly StoredExporter[]) => readonly Exporter[] {
    const urlsOf = shownUrls(keyRing);
    return (all) => {
        const urls = urlsOf(all);
        return all.map((exporter, index) => withoutSecrets(exporter, urls[index] as string));
    };
}

function withoutSecrets(exporter: StoredExporter, url: string): Exporter {
    const { sealedSecret, previousSecrets, sealedHeaders, sealedFormatSecret, sealedAuthentication, schedule, ...shown } = exporter;
    return { ...shown, url, ...(schedule !== null && isSchedule(schedule) && { schedule }) };
}
