import { aheadOf } from '../../clock.ts';
import { ScanwireError } from '../../errors.ts';
import { assertOpens } from '../../keys/key-ring.ts';
import { within } from '../../within.ts';
import type { Session } from '../dispatching/worker-session.ts';
import { isUsable } from '../events/subscription.ts';
import type { Exporter } from '../exporters/exporter.ts';
import type { Exporters } from '../exporters/exporter-operations.ts';
import { sealedForExporters } from '../exporters/exporter-resealing.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { type Finding, found } from './finding.ts';
import { type Names, namesFinding } from './names-finding.ts';
import type { Readiness } from './readiness.ts';
import { receiverFindings } from './receiver-steps.ts';

/** What was found, part by part. Without the store nothing else is looked at. */
export interface Diagnosis {
    /** Whether nothing is wrong; warnings do not count. */
    readonly healthy: boolean;
    readonly findings: readonly Finding[];
}

/** @throws ScanwireError `NOT_FOUND` for an unknown exporter. */
export type Doctor = (exporterId?: string) => Promise<Diagnosis>;

/** Longest time that the store is waited for, in milliseconds: one that is silent is a finding. */
const STORE_TIMEOUT = 5_000;

function lateStore(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `It has not answered within ${STORE_TIMEOUT} ms`);
}

/** Milliseconds by which the clock of this process and that of the store may differ before people are told. */
export const MAX_CLOCK_DIFFERENCE = 1_000;

/** Looks at what publishing and sending need and, with an exporter, at its receiver, to which it sends a `test`. */
export function doctorOf(
    context: Pick<WebhooksContext, 'deliveries' | 'keyRing' | 'exporters' | 'queue'>,
    { get, list, test }: Pick<Exporters, 'get' | 'list' | 'test'>,
    readiness: () => Promise<Readiness>,
    names: Names,
): Doctor {
    return async (exporterId) => {
        const { now, findings } = await storeFindings(context.deliveries);
        if (now === null) {
            return diagnosis(findings);
        }

        const exporters = await list();
        return diagnosis([
            ...findings,
            await keysFinding(context, now),
            queueFinding(await readiness(), context.queue),
            workersFinding(await context.deliveries.sessions(), exporters),
            await namesFinding(exporters, context, names),
            stoppedFinding(exporters),
            ...unusableFinding(exporters),
            ...(exporterId === undefined ? [] : await receiverFindings(await get(exporterId), test)),
        ]);
    };
}

/** The diagnosis with these findings. */
export function diagnosis(findings: readonly Finding[]): Diagnosis {
    return { healthy: findings.every(({ state }) => state !== 'wrong'), findings };
}

/** With the clock, where the store answers. */
async function storeFindings({
    name = 'The store',
    now,
}: WebhooksContext['deliveries']): Promise<{ readonly now: Date | null; readonly findings: readonly Finding[] }> {
    const asked = Date.now();
    try {
        const answer = await within(now(), { timeout: STORE_TIMEOUT, late: lateStore });
        const clock = clockFinding(aheadOf(answer, asked, Date.now()));
        return { now: answer, findings: [found('store', 'ok', 'store_answers', [name]), clock] };
    } catch (error) {
        return { now: null, findings: [found('store', 'wrong', 'store_unusable', [name, (error as Error).message])] };
    }
}

function clockFinding(difference: number): Finding {
    const seconds = [(Math.abs(difference) / 1000).toFixed(1)];
    return Math.abs(difference) > MAX_CLOCK_DIFFERENCE
        ? found('clock', 'warning', difference > 0 ? 'clock_far_ahead' : 'clock_far_behind', seconds)
        : found('clock', 'ok', difference > 0 ? 'clock_ahead' : 'clock_behind', seconds);
}

async function keysFinding({ exporters, keyRing }: Pick<WebhooksContext, 'exporters' | 'keyRing'>, now: Date): Promise<Finding> {
    try {
        assertOpens(keyRing, await sealedForExporters(exporters, now));
        return found('keys', 'ok', 'keys_open');
    } catch (error) {
        if (!(error instanceof ScanwireError) || error.code !== 'MISCONFIGURED') {
            throw error;
        }
        return found('keys', 'wrong', 'keys_missing', [error.message]);
    }
}

function queueFinding({ reasons }: Readiness, { name }: WebhooksContext['queue']): Finding {
    const failure = reasons.find(({ part }) => part === 'queue');
    if (failure !== undefined) {
        return found('queue', 'wrong', 'queue_unusable', [failure.message]);
    }
    return name === undefined ? found('queue', 'ok', 'queue_works') : found('queue', 'ok', 'queue_works_in', [name]);
}

/** Tells who sends for each collector. A collector with running exporters for which nobody sends is wrong. */
function workersFinding(sessions: readonly Pick<Session, 'slots'>[], exporters: readonly Exporter[]): Finding {
    const all = new Map<string, { processes: number; slots: number }>();
    for (const [collector, slots] of sessions.flatMap((session) => Object.entries(session.slots))) {
        const { processes, slots: others } = all.get(collector) ?? { processes: 0, slots: 0 };
        all.set(collector, { processes: processes + 1, slots: others + slots });
    }
    if (all.size === 0) {
        return found('workers', 'wrong', 'nobody_sends');
    }

    const needed = new Set(exporters.filter(({ state }) => state === 'running').map(({ collector }) => collector));
    const [missing] = [...needed].filter((collector) => !all.has(collector)).sort();
    if (missing !== undefined) {
        return found('workers', 'wrong', 'nobody_sends_for', [missing]);
    }
    const values = [...all].sort().flatMap(([collector, { processes, slots }]) => [collector, String(processes), String(slots)]);
    return found('workers', 'ok', 'sent_for', values);
}

function stoppedFinding(exporters: readonly Exporter[]): Finding {
    const stopped = exporters.filter(({ stopReason }) => stopReason !== null);
    const values = stopped.flatMap(({ id, stopReason }) => [id, String(stopReason)]);
    return stopped.length === 0 ? found('exporters', 'ok', 'none_stopped') : found('exporters', 'warning', 'some_stopped', values);
}

/** Exporters that get no events since nothing can be made of what is stored of their kinds or filter; nothing where all can be used. */
function unusableFinding(exporters: readonly Exporter[]): readonly Finding[] {
    const unusable = exporters.filter((exporter) => !isUsable(exporter)).map(({ id }) => id);
    return unusable.length === 0 ? [] : [found('exporters', 'wrong', 'some_unusable', unusable)];
}
