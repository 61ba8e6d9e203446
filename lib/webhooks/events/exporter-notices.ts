import { ScanwireError } from '../../errors.ts';
import type { RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { Outcome } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { eventBody } from './event-body.ts';
import { type ExporterKind, exporterKinds } from './event-kinds.ts';
import type { UnroutedEvent } from './event-routing.ts';

/** What became of an exporter while its outcomes were recorded, to be published to those who subscribe to it. */
export interface ExporterNotice {
    /** UUID, the id of the event that it becomes: published twice, it is one event. */
    readonly id: string;
    /** Its place among the notices of the store, above 0: those that come behind it have a higher one. */
    readonly position: number;
    readonly exporterId: string;
    readonly kind: ExporterKind;
    /** When it happened, in the store's time. The other fields are as they were then. */
    readonly at: Date;
    readonly name: string;
    readonly collector: string;
    readonly owner: string | null;
    /** Failures in a row. */
    readonly failures: number;
    /** Since when it fails or, of one that has recovered, had failed; null when no failure is on record. */
    readonly failingSince: Date | null;
    /** Why it was stopped, else null. */
    readonly reason: string | null;
    readonly lastOutcome: Pick<Outcome, 'code' | 'detail'> | null;
}

/** Publishes what becomes of exporters as events, in every process that reads the store. */
export interface Notices {
    start(): void;
    /** Reads the notices now, since this outcome may have changed its exporter. */
    recorded(outcome: Pick<RecordedOutcome, 'exporterId' | 'health' | 'stopReason'>): void;
    /** Resolves once the notice that is being published is published; those behind it are left to the next start, or to other processes. */
    stop(): Promise<void>;
}

/**
 * Milliseconds: how often notices are looked for that other processes have caused, dead ones included; and the shortest time between two looks.
 */
const POLL_EVERY = 5_000;
const MIN_INTERVAL = 500;

/**
 * Milliseconds for which a worker leaves a notice to a host, from when it has first seen it: a host may take as long to be started anew. Then it goes out to
 * those whose formats are known, who have waited with the others; of the others each delivery ends with the reason.
 */
const LEFT_FOR = 60_000;

/** Notices of one reading. */
const BATCH = 100;

type NoticesContext = Pick<
    WebhooksContext,
    'exporters' | 'deliveries' | 'routing' | 'dispatcher' | 'lookout' | 'stopAfter' | 'role' | 'monotonic' | 'onError' | 'onEvent'
>;

/** The notices of a store, none in one that makes none. What fails is reported and tried again at the next poll. */
export function noticesOf(context: NoticesContext): Notices {
    const { exporters, role, lookout, monotonic, onError } = context;
    const failing = new Set<string>();
    /** Notices that this worker leaves to a host, and since when. */
    const leftSince = new Map<string, number>();
    let poll: NodeJS.Timeout | undefined;
    let interval: NodeJS.Timeout | undefined;
    let wanted = false;
    let publishing: Promise<void> | null = null;

    async function publishAll(): Promise<void> {
        const left = new Set<string>();
        for await (const notice of unforgotten(exporters, () => poll === undefined)) {
            const since = leftSince.get(notice.id) ?? monotonic();
            const mayLeave = role === 'worker' && monotonic() - since < LEFT_FOR;
            if ((await publishNotice(notice, mayLeave, context)) === 'left') {
                left.add(notice.id);
                leftSince.set(notice.id, since);
            }
        }
        // A stop leaves some unread, which are left as they were.
        for (const id of poll === undefined ? [] : leftSince.keys()) {
            if (!left.has(id)) {
                leftSince.delete(id);
            }
        }
    }

    /** Reads at once, {@link MIN_INTERVAL} after the last reading has begun, or when it has ended. */
    function readSoon(): void {
        wanted = true;
        if (poll === undefined || interval !== undefined || publishing !== null) {
            return;
        }
        wanted = false;
        interval = setTimeout(() => {
            interval = undefined;
            readIfWanted();
        }, MIN_INTERVAL);
        interval.unref();
        publishing = publishAll()
            .catch(onError)
            .finally(() => {
                publishing = null;
                readIfWanted();
            });
    }

    function readIfWanted(): void {
        if (wanted) {
            readSoon();
        }
    }

    return {
        start() {
            if (poll === undefined && exporters.notices) {
                poll = setInterval(() => lookout.rulesOut('notices') || readSoon(), POLL_EVERY);
                poll.unref();
                readSoon();
            }
        },

        recorded({ exporterId, health, stopReason }) {
            if (health === 'failure' || stopReason !== null) {
                failing.add(exporterId);
                readSoon();
            } else if (health === 'success' && failing.delete(exporterId)) {
                readSoon();
            }
        },

        async stop() {
            clearInterval(poll);
            clearTimeout(interval);
            poll = undefined;
            interval = undefined;
            await publishing;
        },
    };
}

/**
 * The notices of a store, each once. A page begins behind the one before it, not at the first row: those that are left stay there, and nobody may
 * come for them for days. Ends early once it is stopped.
 */
async function* unforgotten(exporters: NoticesContext['exporters'], isStopped: () => boolean): AsyncGenerator<ExporterNotice> {
    let after = 0;
    for (let isMore = true; isMore && !isStopped(); ) {
        const found = (await exporters.notices?.(BATCH, after)) ?? [];
        for (const notice of found) {
            if (isStopped()) {
                return;
            }
            yield notice;
        }
        const last = found.at(-1)?.position ?? after;
        // A store that gives the same page again would be read for ever.
        isMore = found.length === BATCH && last > after;
        after = last;
    }
}

const EVENT_TYPES = {
    exporter_failing: 'exporter.failing',
    exporter_stopped: 'exporter.stopped',
    exporter_recovered: 'exporter.recovered',
} as const;

/** What became of a notice: published, now or before; or left to a host, since this worker has not got the format of an exporter, or to a later release. */
type Published = 'told' | 'left';

/**
 * Publishes a notice, then forgets it. After a crash in between it is published once more, as the same event. Several processes may publish it at the
 * same time: the application hears of it from the one that has removed it.
 */
async function publishNotice(notice: ExporterNotice, mayLeave: boolean, context: NoticesContext): Promise<Published> {
    if (!Object.hasOwn(exporterKinds, notice.kind)) {
        // A later release has written it, and tells it.
        return 'left';
    }

    const event = usableEvent(notice, context);
    if (!(event instanceof ScanwireError) && (await publishEvent(event, mayLeave, context)) === 'left') {
        return 'left';
    }

    const { exporters } = context;
    // A store of another maker that does not say what it has removed has removed it.
    const removed = exporters.forgetNotices === undefined ? [] : ((await exporters.forgetNotices([notice.id])) ?? [notice.id]);
    if (removed.includes(notice.id)) {
        if (event instanceof ScanwireError) {
            context.onError(event);
        }
        emit(notice, context).catch(context.onError);
    }
    return 'told';
}

/** Emits the event of a notice to the application. What the application does with it must not disturb publishing. */
async function emit(notice: ExporterNotice, { onEvent }: NoticesContext): Promise<void> {
    const { kind, exporterId, collector, at, failures, failingSince, reason, lastOutcome } = notice;
    const code = lastOutcome?.code ?? null;
    await onEvent({ type: EVENT_TYPES[kind], exporterId, collector, at, failures, failingSince, reason, code });
}

async function publishEvent(
    event: UnroutedEvent,
    mayLeave: boolean,
    { deliveries, routing, dispatcher }: NoticesContext,
): Promise<Published> {
    try {
        // Asked with each routing: what was known of subscribers before may be old.
        const accepted = await routing.route([event], async (newEvents, revision) => {
            return mayLeave && !(await routing.hasFormatsFor(event)) ? null : await deliveries.accept(newEvents, revision);
        });
        if (accepted === null) {
            return 'left';
        }
        if (accepted.some((one) => one.deliveries.length > 0)) {
            dispatcher.wake();
        }
    } catch (error) {
        // Accepted before.
        if (!(error instanceof ScanwireError) || error.code !== 'CONFLICT' || error.field !== undefined) {
            throw error;
        }
    }
    return 'told';
}

/**
 * The event of a notice, or what to report where none can be made: somebody may have written into its row past all checks. Those behind it are told
 * all the same.
 */
function usableEvent(notice: ExporterNotice, { stopAfter }: NoticesContext): UnroutedEvent | ScanwireError {
    try {
        return noticeEvent(notice, stopAfter);
    } catch (cause) {
        if (!(cause instanceof ScanwireError) || cause.code !== 'INVALID_INPUT') {
            throw cause;
        }
        const told = `That exporter ${notice.exporterId} is in another state (${notice.kind}) is told to nobody who watches it`;
        return new ScanwireError('INVALID_INPUT', `${told}: ${cause.message}`, { cause });
    }
}

/** The event of a notice; never to the exporter that it is about. */
function noticeEvent(notice: ExporterNotice, stopAfter: number): UnroutedEvent {
    const { id, exporterId, owner, failingSince, reason, lastOutcome } = notice;
    const kind = exporterKinds[notice.kind];
    const willStop = notice.kind === 'exporter_failing' && failingSince !== null;
    const body = {
        timestamp: notice.at,
        exporterId,
        exporterName: notice.name,
        collector: notice.collector,
        ...(owner !== null && { owner }),
        ...(reason !== null && { reason }),
        failures: notice.failures,
        ...(failingSince !== null && { failingSince }),
        ...(lastOutcome !== null && { lastOutcome: { code: lastOutcome.code, detail: lastOutcome.detail } }),
        ...(willStop && { stopsAt: new Date(failingSince.getTime() + stopAfter) }),
    };
    return { id, kind, body: eventBody(kind, body), rules: null, owner, about: exporterId };
}
