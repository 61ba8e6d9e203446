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
    /** Resolves once what is being published is published. */
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
    'exporters' | 'deliveries' | 'routing' | 'dispatcher' | 'stopAfter' | 'role' | 'monotonic' | 'onError' | 'onEvent'
>;

/** The notices of a store, none in one that makes none. What fails is reported and tried again at the next poll. */
export function noticesOf(context: NoticesContext): Notices {
    const { exporters, role, monotonic, onError, onEvent } = context;
    const failing = new Set<string>();
    /** Notices that this worker leaves to a host, and since when. */
    const leftSince = new Map<string, number>();
    let poll: NodeJS.Timeout | undefined;
    let interval: NodeJS.Timeout | undefined;
    let wanted = false;
    let publishing: Promise<void> = Promise.resolve();

    /** Emits the event of a notice to the application. What the application does with it must not disturb publishing. */
    async function emit({ kind, exporterId, collector, at, failures, failingSince, reason, lastOutcome }: ExporterNotice): Promise<void> {
        const code = lastOutcome?.code ?? null;
        await onEvent({ type: EVENT_TYPES[kind], exporterId, collector, at, failures, failingSince, reason, code });
    }

    async function publishAll(): Promise<void> {
        const left = new Set<string>();
        for (let isMore = true; isMore; ) {
            // Those that are left to hosts come first again, and must not keep others from being read.
            const limit = left.size + BATCH;
            const found = (await exporters.notices?.(limit)) ?? [];
            isMore = found.length === limit;
            for (const notice of found.filter(({ id }) => !left.has(id))) {
                const since = leftSince.get(notice.id) ?? monotonic();
                const mayLeave = role === 'worker' && monotonic() - since < LEFT_FOR;
                const result = await publishNotice(notice, mayLeave, context);
                if (result === 'left') {
                    left.add(notice.id);
                    leftSince.set(notice.id, since);
                } else if (result !== 'again') {
                    emit(notice).catch(onError);
                }
            }
        }
        for (const id of leftSince.keys()) {
            if (!left.has(id)) {
                leftSince.delete(id);
            }
        }
    }

    /** Reads at once, or {@link MIN_INTERVAL} after the last reading. */
    function readSoon(): void {
        wanted = true;
        if (poll === undefined || interval !== undefined) {
            return;
        }
        wanted = false;
        publishing = publishing.then(publishAll).catch(onError);
        interval = setTimeout(() => {
            interval = undefined;
            if (wanted) {
                readSoon();
            }
        }, MIN_INTERVAL);
        interval.unref();
    }

    return {
        start() {
            if (poll === undefined && exporters.notices) {
                poll = setInterval(readSoon, POLL_EVERY);
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

const EVENT_TYPES = {
    exporter_failing: 'exporter.failing',
    exporter_stopped: 'exporter.stopped',
    exporter_recovered: 'exporter.recovered',
} as const;

/**
 * What became of a notice: published by this call; published before; left to a host, since this worker has not got the format of an exporter, or to a later
 * release; or no event, since none can be made of it.
 */
type Published = 'first' | 'again' | 'left' | 'unusable';

/** Publishes a notice, then forgets it. After a crash in between it is published once more, as the same event. */
async function publishNotice(notice: ExporterNotice, mayLeave: boolean, context: NoticesContext): Promise<Published> {
    if (!Object.hasOwn(exporterKinds, notice.kind)) {
        // A later release has written it, and tells it.
        return 'left';
    }

    const event = usableEvent(notice, context);
    const result = event === null ? 'unusable' : await publishEvent(event, mayLeave, context);
    if (result !== 'left') {
        await context.exporters.forgetNotices?.([notice.id]);
    }
    return result;
}

async function publishEvent(
    event: UnroutedEvent,
    mayLeave: boolean,
    { deliveries, routing, dispatcher }: NoticesContext,
): Promise<Exclude<Published, 'unusable'>> {
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
        return 'first';
    } catch (error) {
        if (!(error instanceof ScanwireError) || error.code !== 'CONFLICT' || error.field !== undefined) {
            throw error;
        }
        return 'again';
    }
}

/**
 * The event of a notice, null where none can be made: somebody may have written into its row past all checks. That is reported, and those behind it
 * are told.
 */
function usableEvent(notice: ExporterNotice, { stopAfter, onError }: NoticesContext): UnroutedEvent | null {
    try {
        return noticeEvent(notice, stopAfter);
    } catch (cause) {
        if (!(cause instanceof ScanwireError) || cause.code !== 'INVALID_INPUT') {
            throw cause;
        }
        const told = `That exporter ${notice.exporterId} is in another state (${notice.kind}) is told to nobody who watches it`;
        onError(new ScanwireError('INVALID_INPUT', `${told}: ${cause.message}`, { cause }));
        return null;
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
