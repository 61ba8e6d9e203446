import { ScanwireError } from '../errors.ts';
import { eventBody } from './event-body.ts';
import { type ExporterKind, exporterKinds } from './event-kinds.ts';
import type { WebhooksContext } from './options.ts';
import type { Outcome } from './outcome.ts';
import type { RecordedOutcome } from './store.ts';
import type { UnaddressedEvent } from './subscriptions.ts';

/** What became of an exporter while its outcomes were recorded, to be told to those who subscribe to it. */
export interface ExporterNotice {
    /** UUID, the id of the event that tells it: told twice, it is one event. */
    readonly id: string;
    readonly exporterId: string;
    readonly kind: ExporterKind;
    /** When it was, in the store's time. The rest is as it was then. */
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

/** Tells what becomes of exporters as events, in every process that may look at the store. */
export interface Notices {
    begin(): void;
    /** What an outcome may have made of its exporter is looked for now. */
    recorded(outcome: Pick<RecordedOutcome, 'exporterId' | 'health' | 'stopReason'>): void;
    /** Resolves once what is being told is told. */
    end(): Promise<void>;
}

/** How often notices are looked for that another process, or one that has died, has caused; and the least time between two looks. In milliseconds. */
const POLL_EVERY = 5_000;
const QUIET = 500;

/** Notices of one look. */
const BATCH = 100;

type TellingContext = Pick<
    WebhooksContext,
    'exporters' | 'deliveries' | 'subscriptions' | 'dispatcher' | 'stopAfter' | 'onError' | 'onEvent'
>;

/** The notices of a store, none in one that makes none. What fails is reported and tried again at the next poll. */
export function noticesOf(context: TellingContext): Notices {
    const { exporters, onError, onEvent } = context;
    const failing = new Set<string>();
    let poll: NodeJS.Timeout | undefined;
    let quiet: NodeJS.Timeout | undefined;
    let wanted = false;
    let telling: Promise<void> = Promise.resolve();

    /** What the application does with it is no part of telling. */
    async function announce({
        kind,
        exporterId,
        collector,
        at,
        failures,
        failingSince,
        reason,
        lastOutcome,
    }: ExporterNotice): Promise<void> {
        const code = lastOutcome?.code ?? null;
        await onEvent({ type: EVENT_TYPES[kind], exporterId, collector, at, failures, failingSince, reason, code });
    }

    async function tellAll(): Promise<void> {
        let found: readonly ExporterNotice[];
        do {
            found = (await exporters.notices?.(BATCH)) ?? [];
            for (const notice of found) {
                if (await tell(notice, context)) {
                    announce(notice).catch(onError);
                }
            }
        } while (found.length === BATCH);
    }

    /** At once, and no more often than the quiet between two looks. */
    function look(): void {
        wanted = true;
        if (poll === undefined || quiet !== undefined) {
            return;
        }
        wanted = false;
        telling = telling.then(tellAll).catch(onError);
        quiet = setTimeout(() => {
            quiet = undefined;
            if (wanted) {
                look();
            }
        }, QUIET);
        quiet.unref();
    }

    return {
        begin() {
            if (poll === undefined && exporters.notices !== undefined) {
                poll = setInterval(look, POLL_EVERY);
                poll.unref();
                look();
            }
        },

        recorded({ exporterId, health, stopReason }) {
            if (health === 'failure' || stopReason !== null) {
                failing.add(exporterId);
                look();
            } else if (health === 'success' && failing.delete(exporterId)) {
                look();
            }
        },

        async end() {
            clearInterval(poll);
            clearTimeout(quiet);
            poll = undefined;
            quiet = undefined;
            await telling;
        },
    };
}

const EVENT_TYPES = {
    exporter_failing: 'exporter.failing',
    exporter_stopped: 'exporter.stopped',
    exporter_recovered: 'exporter.recovered',
} as const;

/**
 * A crash between the event and the end of its notice tells it once more, as the same event.
 *
 * @returns Whether it was told by this, and not before.
 */
async function tell(
    notice: ExporterNotice,
    { exporters, deliveries, subscriptions, dispatcher, stopAfter }: TellingContext,
): Promise<boolean> {
    const event = noticeEvent(notice, stopAfter);
    let first = true;
    try {
        const [accepted] = await subscriptions.addressed([event], (newEvents, revision) => deliveries.accept(newEvents, revision));
        if (accepted !== undefined && accepted.deliveries.length > 0) {
            dispatcher.wake();
        }
    } catch (error) {
        if (!(error instanceof ScanwireError) || error.code !== 'CONFLICT' || error.field !== undefined) {
            throw error;
        }
        first = false;
    }
    await exporters.forgetNotices?.([notice.id]);
    return first;
}

/** The event that tells a notice; never to the exporter that it is about. */
function noticeEvent(notice: ExporterNotice, stopAfter: number): UnaddressedEvent {
    const { id, exporterId, owner, failingSince, reason, lastOutcome } = notice;
    const kind = exporterKinds[notice.kind];
    const stops = notice.kind === 'exporter_failing' && failingSince !== null;
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
        ...(stops && { stopsAt: new Date(failingSince.getTime() + stopAfter) }),
    };
    return { id, kind, body: eventBody(kind, body), rules: null, owner, about: exporterId };
}
