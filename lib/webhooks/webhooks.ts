import { aheadOf } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { assertOpens } from '../keys/key-ring.ts';
import { checked } from '../schema-validation.ts';
import { allEnded, within } from '../within.ts';
import { type Deliveries, deliveriesOf, type Events, eventsOf } from './deliveries/deliveries.ts';
import { retentionOf } from './deliveries/retention.ts';
import { type Membership, membership } from './deployment-settings.ts';
import { type DeliveryQueue, firstContact } from './dispatching/delivery-queue.ts';
import { dispatcher } from './dispatching/dispatcher.ts';
import { lookoutOf } from './dispatching/outlook.ts';
import { reservationsOf } from './dispatching/reservations.ts';
import { claimingSession } from './dispatching/worker-session.ts';
import { type EventKinds, eventKinds } from './events/event-kinds.ts';
import { eventRouting } from './events/event-routing.ts';
import { noticesOf } from './events/exporter-notices.ts';
import { type Publish, type PublishAll, publisher } from './events/publisher.ts';
import type { Overview } from './exporters/exporter-health.ts';
import { type Exporters, exporters } from './exporters/exporter-operations.ts';
import { sealedForExporters } from './exporters/exporter-resealing.ts';
import { urlSealing } from './exporters/sealed-url.ts';
import { testsUnderWay } from './exporters/test-event.ts';
import { formatTable } from './formats/format.ts';
import { vendorNamed } from './messages/signature.ts';
import { type Doctor, doctorOf, MAX_CLOCK_DIFFERENCE } from './observing/doctor.ts';
import { namesAsTheSender } from './observing/names-finding.ts';
import { type Phase, type Readiness, readinessCheck, watchedQueue } from './observing/readiness.ts';
import { tracesOf } from './observing/trace-store.ts';
import {
    CLAIM_MARGIN,
    type CloseOptions,
    drainTimeoutFor,
    type WebhookStores,
    type WebhooksOptions,
    type WorkerOptions,
    webhooksSchema,
    workSchema,
} from './options.ts';
import { FIRST_PROBE, MAX_PROBE } from './outcomes/breaker.ts';
import { responsesOf } from './outcomes/response-bodies.ts';
import { byteBudget } from './sending/byte-budget.ts';
import { collectorWorkers } from './sending/collector-workers.ts';
import { messageCache } from './sending/message-cache.ts';
import { readingAhead } from './sending/read-ahead.ts';

/** The webhook exporter without a server around it. */
export interface Webhooks {
    readonly publish: Publish;
    readonly publishAll: PublishAll;
    readonly exporters: Exporters;
    readonly deliveries: Deliveries;
    readonly events: Events;
    /** Every kind of event that can be published, by its name. */
    kinds(): EventKinds;
    /**
     * Starts this process. The key ring is checked first. Then a host stores its settings as those of the deployment; a worker makes sure that its own
     * are the same. Then the queue is checked, and what is due is handed out. A queue whose server is away is tried again in the background.
     *
     * @throws ScanwireError `MISCONFIGURED`; `UNAVAILABLE` without the stores.
     */
    start(): Promise<void>;
    /**
     * Sends for these collectors in this process, with the settings that are kept in the store. Sends nothing if the settings have been changed
     * since the start.
     *
     * @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`.
     */
    work(collectors: readonly string[], options?: WorkerOptions): Promise<void>;
    /**
     * Checks what publishing and sending need: store, clock, key ring, queue, and who sends. With the id of an exporter it also checks its
     * receiver, step by step, by a `test`. @throws ScanwireError `NOT_FOUND` for an unknown exporter.
     */
    readonly doctor: Doctor;
    /**
     * How much there is to do, for all processes together: active deliveries, up to 100,000 of a state, exporters, and how many processes
     * send. Null with a store that does not count. @throws ScanwireError `UNAVAILABLE`.
     */
    overview(): Promise<(Overview & { readonly sessions: number }) | null>;
    /** Whether this process can accept and deliver now. Never rejects, and answers within 2 s. */
    readiness(): Promise<Readiness>;
    /**
     * Hands out and claims nothing more, finishes what is being sent, ends idle connections. Stores and queue stay open, and it can be
     * started again. A second call joins the first, and may shorten it.
     */
    close(options?: CloseOptions): Promise<void>;
}

/** Maximum number of deliveries of each state that are counted, since every scrape of the metrics reads an index for them. */
const MAX_OVERVIEW = 100_000;

/** Milliseconds at the end of a stop that are reserved for recording what was given up, and then for releasing claims; at most a third of the stop. */
const RESERVED_FOR_RELEASE = 1_000;

/**
 * The webhook exporter: accepts events, keeps exporters, hands deliveries to the workers of their collectors, and sends them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option and the rule it breaks.
 */
export function webhooks(options: WebhooksOptions): Webhooks {
    const settings = checked(webhooksSchema, options, { subject: 'webhooks options', code: 'MISCONFIGURED' });
    assertOneDatabase(settings);
    assertRateHeeded(settings);
    const member = membership(settings, outdated);
    const watched = watchedQueue(settings.queue);
    let phase: Phase = 'starting';
    const context = contextOf(settings, { queue: watched.queue, member, replaced });
    const workers = collectorWorkers(context, context.dispatcher.sweep);
    const queueContact = firstContact(watched.queue, settings.onError);
    const sealing = urlSealing(context);
    const closing = shortenable(settings, finish);
    const readiness = readinessCheck(settings.deliveries, watched, () => phase);

    function is(what: Phase): boolean {
        return phase === what;
    }

    /** Fetches no more work. What is being sent goes on with the settings that it was begun with; a later `close` waits for it. */
    function stopSending(): Promise<void> {
        queueContact.stop();
        return allEnded([...stopPolling(context), workers.stop()], settings.onError);
    }

    async function finish(wait: Wait): Promise<void> {
        const finished = allEnded([stopSending(), sealing.stop()], settings.onError);
        await wait(finished, 1, 'Not everything that was being sent ended');
        // What is still being sent is given up, and its outcome recorded.
        const sent = allEnded([settings.sender.close({ timeout: 0 }), finished], settings.onError);
        await wait(sent, 1 / 2, 'Not every outcome could be recorded');
        await wait(workers.end(), 0, 'What was claimed could not be released');
    }

    function outdated(): void {
        phase = 'outdated';
        void stopSending();
        settings.onOutdated();
    }

    /** It goes on accepting, and is not begun again by itself: the two would take the name from each other without end. */
    function replaced(): void {
        if (is('draining')) {
            return;
        }
        phase = 'replaced';
        void stopSending();
        const message = 'Cannot go on sending here: another process of the deployment has begun under the processName of this one';
        settings.onError(new ScanwireError('CONFLICT', message, { field: 'processName' }));
    }

    return {
        ...publisher(context),
        ...readsOf(context, readiness),

        async start() {
            await closing.ended();
            phase = 'starting';
            const asked = Date.now();
            const now = await settings.deliveries.now();
            reportClockDifference(aheadOf(now, asked, Date.now()), settings.onError);
            assertOpens(settings.keyRing, await sealedForExporters(settings.exporters, now));
            await member.join(settings.role);
            await sealing.start();
            await queueContact.start(() => startPolling(context));
            // Meanwhile the settings may have been changed, or this process closed.
            phase = is('starting') ? 'running' : phase;
        },

        async work(collectors, { concurrency } = {}) {
            const valid = checked(workSchema, { collectors, concurrency }, { subject: 'work options', code: 'MISCONFIGURED' });
            // This is no error: a host can still accept events, and a worker has been told by `onOutdated` or `onError`.
            if (is('outdated') || is('replaced')) {
                return;
            }
            await workers.begin(new Set(valid.collectors), valid.concurrency);
        },

        close({ timeout = drainTimeoutFor(settings.sender.attemptTimeout) } = {}) {
            phase = 'draining';
            return closing.within(timeout);
        },
    };
}

type Read = 'exporters' | 'deliveries' | 'events' | 'kinds' | 'readiness' | 'overview' | 'doctor';

function readsOf(context: ReturnType<typeof contextOf>, readiness: Webhooks['readiness']): Pick<Webhooks, Read> {
    const own = exporters(context);
    return {
        exporters: own,
        readiness,
        doctor: doctorOf(context, own, readiness, namesAsTheSender(context)),
        deliveries: deliveriesOf(context),
        events: eventsOf(context),
        kinds: () => context.kinds,

        async overview() {
            const { exporters, deliveries } = context;
            const [counted, sessions] = await Promise.all([exporters.overview?.(MAX_OVERVIEW), deliveries.sessions()]);
            return counted === undefined ? null : { ...counted, sessions: sessions.length };
        },
    };
}

/** Starts to poll for due deliveries, for notices to publish, and for rows to remove. */
function startPolling({ dispatcher, notices, retention, role }: ReturnType<typeof contextOf>): void {
    dispatcher.start();
    notices.start();
    // Only a host decides for how long rows are kept, so that only a host removes them.
    if (role === 'host') {
        retention.start();
    }
}

function stopPolling({ dispatcher, notices, retention }: ReturnType<typeof contextOf>): readonly Promise<void>[] {
    return [dispatcher.stop(), notices.stop(), retention.stop()];
}

/** Refuses stores of different databases: what one store accepts, the other has to find. @throws ScanwireError `MISCONFIGURED`. */
function assertOneDatabase({ exporters: { database }, ...others }: WebhookStores): void {
    for (const field of ['deliveries', 'settings'] as const) {
        const other = others[field].database;
        if (database !== undefined && other !== undefined && other !== database) {
            throw new ScanwireError('MISCONFIGURED', `webhooks options: ${field} must be of the same database as exporters`, { field });
        }
    }
}

/** Refuses a rate for the deployment where the store would not heed it. @throws ScanwireError `MISCONFIGURED`. */
function assertRateHeeded({ rate, deliveries }: Required<WebhooksOptions>): void {
    if (rate !== null && deliveries.rated !== true) {
        throw new ScanwireError('MISCONFIGURED', 'webhooks options: rate must be null: the store of deliveries heeds none', {
            field: 'rate',
        });
    }
}

/** What is made for a webhook exporter, and is no option of it. */
interface OwnParts {
    readonly queue: DeliveryQueue;
    readonly member: Membership;
    readonly replaced: () => void;
}

/** What all parts work with. */
function contextOf(settings: Required<WebhooksOptions>, { queue, member, replaced }: OwnParts) {
    const parts = { ...settings, ...madeOf(settings), queue, member, lookout: lookoutOf(settings.monotonic) };
    const reservations = reservationsOf(parts);
    const bodyMemory = byteBudget({ limit: settings.maxBytesInFlight, largest: settings.maxBodyBytes });
    const cache = messageCache(bodyMemory);
    const routing = eventRouting({ ...parts, reservations });
    const session = claimingSession(parts, reservations, replaced);
    const traces = tracesOf(parts);
    const dispatching = dispatcher({ ...parts, readAhead: readingAhead({ ...parts, session, traces, bodyMemory, messageCache: cache }) });
    return {
        ...parts,
        dispatcher: dispatching,
        session,
        reservations,
        bodyMemory,
        messageCache: cache,
        routing,
        traces,
        responses: responsesOf(parts),
        tests: testsUnderWay(parts),
        retention: retentionOf(parts),
        notices: noticesOf({ ...parts, dispatcher: dispatching, routing }),
    };
}

/** What is made of the settings. */
function madeOf({ vendor, kinds, formats, sender, window, breakerAfter, stopAfter, onWarning }: Required<WebhooksOptions>) {
    return {
        vendor: vendorNamed(vendor),
        kinds: eventKinds(kinds, onWarning),
        formats: formatTable(formats),
        breakerRules: { after: breakerAfter, firstProbe: FIRST_PROBE, maxProbe: MAX_PROBE, stopAfter, window },
        claimDuration: sender.attemptTimeout + CLAIM_MARGIN,
    };
}

/** A stop that later calls join, and end earlier if they have less time. */
interface Shortenable {
    within(timeout: number): Promise<void>;
    /** Resolves once a stop that is under way has ended. */
    ended(): Promise<void>;
}

/**
 * Waits, and reports what fails or is late.
 *
 * @param reserved The part of {@link RESERVED_FOR_RELEASE}, 0 to 1, that is kept for the steps after this one.
 * @param what What has not been done, for the report when it is late.
 */
type Wait = (work: Promise<unknown>, reserved: number, what: string) => Promise<void>;

function shortenable({ monotonic, onError }: Required<WebhooksOptions>, stop: (wait: Wait) => Promise<void>): Shortenable {
    let stopping: Promise<void> | null = null;
    let timeout = 0;
    let end = 0;
    let change = new AbortController();

    async function wait(work: Promise<unknown>, reserved: number, what: string): Promise<void> {
        const late = (): Error => new ScanwireError('UNAVAILABLE', `${what} within the ${timeout} ms that stopping may take`);
        let { signal } = change;
        do {
            ({ signal } = change);
            const left = end - monotonic() - reserved * Math.min(RESERVED_FOR_RELEASE, timeout / 3);
            const report = (error: Error): void => (signal.aborted ? undefined : onError(error));
            await within(work, { timeout: Math.max(0, left), late, signal }).catch(report);
        } while (signal.aborted);
    }

    return {
        within(given) {
            if (stopping === null || monotonic() + given < end) {
                end = monotonic() + given;
                timeout = given;
                change.abort();
                change = new AbortController();
            }
            stopping ??= stop(wait).finally(() => {
                stopping = null;
            });
            return stopping;
        },

        async ended() {
            await stopping;
        },
    };
}

/**
 * Reports a clock that differs from the store's. The clock of this process judges certificates, and `Retry-After` dates of answers without a
 * `Date`; and its log is hard to compare with those of others.
 */
function reportClockDifference(difference: number, onError: (error: Error) => void): void {
    if (Math.abs(difference) > MAX_CLOCK_DIFFERENCE) {
        const seconds = (Math.abs(difference) / 1000).toFixed(1);
        const side = difference > 0 ? 'ahead of' : 'behind';
        onError(new ScanwireError('MISCONFIGURED', `The clock of this process is ${seconds} s ${side} that of the store`));
    }
}
