import { createHash } from 'node:crypto';
import type { DispatchOptions, DispatchResult } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { HandOutOptions } from '../../../lib/webhooks/dispatching/reservations.ts';
import {
    placesKeptByAcceptance,
    placesKeptByDispatch,
    restAt,
    SHARES,
    type ShareGroup,
    shareGroupsOf,
} from '../../../lib/webhooks/dispatching/slot-shares.ts';
import { handOut } from './delivery-transitions.ts';
import { turnsOf } from './order-keys.ts';
import { type DeliveryRow, type ExporterRow, isSentTo, later, type WebhookState } from './webhook-state.ts';

/** An exporter with deliveries that are due or in flight. */
interface Candidate {
    readonly exporter: ExporterRow;
    readonly due: readonly DeliveryRow[];
    readonly flying: readonly DeliveryRow[];
    readonly inFlight: number;
    readonly window: number;
    readonly slow: boolean;
}

/** A delivery that may be handed out, and how many of its exporter go before it. */
interface Ranked {
    readonly row: DeliveryRow;
    readonly rank: number;
    readonly slow: boolean;
    /** When its exporter had a turn, if it is slow: those that had it longest ago go first. */
    readonly turn: number;
}

/** A group of exporters that share slots. */
interface Sharing extends ShareGroup {
    readonly sharers: readonly Candidate[];
}

/** How deliveries are handed out now. */
interface Dispatching extends DispatchOptions {
    readonly now: Date;
    /** The retries that come before first tries of their exporters, and with a rate of the deployment before those of all. */
    readonly early: ReadonlySet<DeliveryRow>;
}

/** As `DeliveryStore.dispatch` says. Exporters alternate, so that the longest backlog does not use up a small limit. */
export function dispatch(state: WebhookState, options: DispatchOptions): DispatchResult {
    const now = state.clock();
    const candidates = candidatesOf(state, options, now);
    const unpaid = Math.max(0, unpaidOf(options.rate ?? null, state.ratePaidUntil, now));
    const collectors = new Set(candidates.map(({ exporter }) => exporter.collector));

    const sharing: readonly Sharing[] = [...collectors].flatMap((collector) => {
        const ofCollector = candidates.filter(({ exporter }) => exporter.collector === collector);
        const { slow, quick } = shareGroupsOf(ofCollector, slotsOf(state, collector, now));
        return [slow, quick].map((group) => ({ ...group, sharers: ofCollector.filter((one) => one.slow === (group === slow)) }));
    });
    const most = Math.min(options.limit, unpaid);
    const dispatching = { ...options, now, early: earlyRetries(sharing, options.rate === undefined ? null : most, now) };
    const groups = sharing.map((group) => ({ ...group, ...pickFromGroup(group, dispatching) }));
    const picked = groups
        .flatMap((group) => group.picked)
        .sort(byTurnIn(dispatching))
        .slice(0, most);
    payRates(candidates, picked, now);
    takeTurns(
        state,
        groups.filter(({ isCrowded }) => isCrowded).flatMap((group) => group.picked.filter((one) => picked.includes(one))),
    );
    const left = new Set(candidates.flatMap(({ due, window }) => due.filter(({ priority }) => priority === 0 || window > 0)));
    for (const { row } of picked) {
        left.delete(row);
    }
    if (options.rate !== undefined) {
        state.ratePaidUntil = paidUntil(state.ratePaidUntil, now) + (picked.length * 1_000) / options.rate;
    }
    const isUsedUp = unpaid < options.limit && picked.length === unpaid;
    const nextDueIn = nextDueOf(state, now);
    return {
        ...(nextDueIn > 0 && { nextDueIn: Number.isFinite(nextDueIn) ? nextDueIn : null }),
        handedOut: picked.map(({ row }) => handOut(state, row, now, options.beginWithin)),
        waitsFor: isUsedUp ? [] : [...new Set(groups.flatMap((group) => whomItWaitsFor(group, left, candidates, dispatching)))],
    };
}

/** In how many milliseconds the first of what waits is due: not above 0 where it is, and Infinity where nothing waits. */
function nextDueOf(state: WebhookState, now: Date): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [exporter, rows] of groupByExporter(state)) {
        for (const row of rows.filter((one) => one.state === 'pending')) {
            next = Math.min(next, isDue(row, exporter, now) ? 0 : row.dueAt.getTime() - now.getTime());
        }
    }
    return next;
}

/** The exporters whose attempts, when they end, may unblock what is left over of a group. Slow exporters take slots from quick ones, never the other way. */
function whomItWaitsFor(
    { sharers, share }: Sharing,
    left: ReadonlySet<DeliveryRow>,
    candidates: readonly Candidate[],
    dispatching: Dispatching,
): readonly string[] {
    const waiting = sharers.filter(({ due }) => due.some((row) => left.has(row)));
    const shares = waiting.filter((one) => {
        const fitting = new Set(pickWithinShare(one, share, dispatching).map(({ row }) => row));
        return one.due.some((row) => left.has(row) && (fitting.has(row) || (row.priority > 0 && share < one.window)));
    });
    const rivals = candidates.filter((other) => {
        return shares.some((one) => one.exporter.collector === other.exporter.collector && (other.slow || !one.slow));
    });
    return [...waiting, ...rivals].map(({ exporter }) => exporter.id);
}

/** How many deliveries that are accepted now may be handed out at once, as {@link DeliveryStore.accept} says. */
export function roomFor(state: WebhookState, exporter: ExporterRow, options: HandOutOptions): number {
    const now = state.clock();
    const candidates = candidatesOf(state, options, now, exporter);
    const own = candidates.find((one) => one.exporter === exporter) as Candidate;
    const groups = shareGroupsOf(
        candidates.filter((one) => one.exporter.collector === exporter.collector),
        slotsOf(state, exporter.collector, now),
    );
    const { share, room } = own.slow ? groups.slow : groups.quick;
    const { rate, slowStart, pausedUntil, consecutiveFailures } = exporter;
    const steady =
        own.window > 0 && rate === null && slowStart === null && pausedUntil === null && consecutiveFailures < options.breakerAfter;
    const waits = own.due.some(({ priority }) => priority === 1);
    const left = own.due.some(({ priority }) => priority === 2) ? placesKeptByAcceptance(options.window) : 0;
    return steady && !waits ? Math.min(Math.min(own.window, share) - own.inFlight, room) - left : 0;
}

function candidatesOf(state: WebhookState, options: HandOutOptions, now: Date, wanted?: ExporterRow): readonly Candidate[] {
    const groups = groupByExporter(state);
    const hasTurn = turnsOf(state);
    if (wanted !== undefined && !groups.has(wanted)) {
        groups.set(wanted, []);
    }
    return [...groups]
        .map(([exporter, rows]) => candidate(exporter, rows, options, { now, hasTurn }))
        .filter(({ exporter, due, inFlight }) => exporter === wanted || due.length > 0 || inFlight > 0);
}

function groupByExporter(state: WebhookState): Map<ExporterRow, DeliveryRow[]> {
    const groups = new Map<ExporterRow, DeliveryRow[]>();
    for (const row of state.active) {
        const exporter = state.exporters.get(row.exporterId);
        if (exporter !== undefined) {
            const rows = groups.get(exporter) ?? [];
            groups.set(exporter, rows);
            rows.push(row);
        }
    }
    return groups;
}

function candidate(
    exporter: ExporterRow,
    rows: readonly DeliveryRow[],
    options: HandOutOptions,
    { now, hasTurn }: { readonly now: Date; readonly hasTurn: (row: DeliveryRow) => boolean },
): Candidate {
    const flying = rows.filter((row) => row.state !== 'pending');
    const late = flying.some(({ claim, history }) => claim !== null && later(history.at(-1)?.startedAt ?? now, SHARES.slowAfter) < now);
    return {
        exporter,
        flying,
        due: rows.filter((row) => row.state === 'pending' && isDue(row, exporter, now) && hasTurn(row)),
        inFlight: flying.length,
        window: Math.min(ordinaryWindow(exporter, options, now), roomByRate(exporter, flying.length, now)),
        slow: exporter.answersSlowly || late,
    };
}

/** What was tried before the exporter recovered waits no longer. A recovery that is to come was noted before the clock was set back. */
function isDue({ dueAt, queuedAt }: DeliveryRow, { recoveredAt }: ExporterRow, now: Date): boolean {
    return dueAt <= now || (recoveredAt !== null && recoveredAt <= now && queuedAt !== null && queuedAt < recoveredAt);
}

/** How many deliveries of the exporter, single-attempt ones aside, may be in flight. */
function ordinaryWindow(exporter: ExporterRow, { window, breakerAfter }: HandOutOptions, now: Date): number {
    if (!isSentTo(exporter)) {
        return 0;
    }
    if (exporter.pausedUntil !== null || exporter.consecutiveFailures >= breakerAfter) {
        return [exporter.pausedUntil, exporter.probeAt].every((time) => time === null || time <= now) ? 1 : 0;
    }
    return Math.min(window, exporter.slowStart ?? window);
}

/** How many may be in flight so that no more begin than its rate allows by now, a second's worth at most. */
function roomByRate({ rate, ratePaidUntil }: ExporterRow, inFlight: number, now: Date): number {
    const unpaid = unpaidOf(rate, ratePaidUntil, now);
    return unpaid < 1 ? 0 : inFlight + unpaid;
}

/** How many may begin by now, a second's worth at most. */
function unpaidOf(rate: number | null, ratePaidUntil: number | null, now: Date): number {
    return rate === null ? Number.POSITIVE_INFINITY : Math.floor((rate * (now.getTime() - paidUntil(ratePaidUntil, now))) / 1_000);
}

/** What is used up until more than a second from now was used up before the clock was set back. */
function paidUntil(time: number | null, now: Date): number {
    const known = time !== null && time <= now.getTime() + 1_000 ? time : 0;
    return Math.max(known, now.getTime() - 1_000);
}

function payRates(candidates: readonly Candidate[], picked: readonly Ranked[], now: Date): void {
    for (const { exporter } of candidates) {
        const count = picked.filter(({ row }) => row.exporterId === exporter.id && row.priority > 0).length;
        if (exporter.rate !== null && count > 0) {
            exporter.ratePaidUntil = paidUntil(exporter.ratePaidUntil, now) + (count * 1_000) / exporter.rate;
        }
    }
}

/** In the order in which they are picked, so that those of one dispatch keep it. */
function takeTurns(state: WebhookState, picked: readonly Ranked[]): void {
    for (const { row, slow } of picked) {
        if (slow && row.priority > 0) {
            state.turnsTaken += 1;
            (state.exporters.get(row.exporterId) as ExporterRow).turn = state.turnsTaken;
        }
    }
}

function slotsOf(state: WebhookState, collector: string, now: Date): number {
    const alive = [...state.sessions.values()].filter(({ until }) => until > now);
    return alive.reduce((sum, { session }) => sum + (session.slots[collector] ?? 0), 0) || SHARES.defaultSlots;
}

/**
 * For which of its retries each exporter keeps places; and of all of them together, by lot, for no more than an eighth of what a rate of the deployment
 * lets be handed out.
 *
 * @param most How many that rate lets be handed out; null where there is none.
 */
function earlyRetries(sharing: readonly Sharing[], most: number | null, now: Date): ReadonlySet<DeliveryRow> {
    // A rate is asked for once a second, in which the same rest would come round each time.
    const rest = most === null ? restAt(now) : Number.parseInt(lotAt('', now).slice(0, 8), 16) % 8;
    const fitting = sharing.flatMap(({ sharers, share, room }) => (room > 0 ? sharers.flatMap((one) => keptFor(one, share, rest)) : []));
    const kept = most === null ? fitting : fitting.sort(inTurnAt(now)).slice(0, placesKeptByDispatch(most, rest));
    return new Set(kept.map(({ row }) => row));
}

function keptFor({ due, flying, window, inFlight, slow }: Candidate, share: number, rest: number): readonly Ranked[] {
    const own = Math.min(window, share);
    const places = placesKeptByDispatch(own, rest) - flying.filter(({ priority }) => priority === 2).length;
    return due
        .filter(({ priority }) => priority === 2)
        .sort(byPriorityAndAge)
        .slice(0, Math.max(0, Math.min(places, own - inFlight)))
        .map((row, rank) => ({ row, rank, slow, turn: 0 }));
}

/** Single attempts have places of their own; the others share those of the group, each exporter its share at most. */
function pickFromGroup({ sharers, share, room }: Sharing, dispatching: Dispatching) {
    const ranked = sharers.flatMap((one) => pickWithinShare(one, share, dispatching));
    const ordinary = ranked.filter(({ row }) => row.priority > 0).sort(inTurnAt(dispatching.now));
    return {
        picked: [...ranked.filter(({ row }) => row.priority === 0), ...ordinary.slice(0, Math.max(0, room))],
        isCrowded: ordinary.length > room,
    };
}

function pickWithinShare(
    { exporter, slow, due, flying, window, inFlight }: Candidate,
    share: number,
    { early, window: maxInFlight }: Dispatching,
): Ranked[] {
    const order = (a: DeliveryRow, b: DeliveryRow): number => {
        return Number(a.priority > 0) - Number(b.priority > 0) || Number(early.has(b)) - Number(early.has(a)) || byPriorityAndAge(a, b);
    };

    const singles = maxInFlight - flying.filter(({ priority }) => priority === 0).length;
    return [...due]
        .sort(order)
        .map((row, rank) => ({ row, rank, slow, turn: slow ? exporter.turn : 0 }))
        .filter(({ row, rank }) => rank < (row.priority === 0 ? singles : Math.min(window, share) - inFlight));
}

/** Not by the age of deliveries: exporters with old ones would always be the first. Lots decide among those that had no turn yet. */
function inTurnAt(now: Date): (a: Ranked, b: Ranked) => number {
    const lot = ({ row }: Ranked): string => lotAt(row.exporterId, now);
    return (a, b) => a.rank - b.rank || a.turn - b.turn || lot(a).localeCompare(lot(b));
}

function lotAt(drawer: string, now: Date): string {
    return createHash('md5').update(`${drawer} ${now.getTime()}`).digest('hex');
}

/** Single attempts first, then retries that come first where there is a rate of the deployment, then the exporters in turn. */
function byTurnIn({ early, rate }: Dispatching): (a: Ranked, b: Ranked) => number {
    const isLate = ({ row }: Ranked): boolean => rate !== undefined && !early.has(row);
    return (a, b) =>
        Number(a.row.priority > 0) - Number(b.row.priority > 0) ||
        Number(isLate(a)) - Number(isLate(b)) ||
        a.rank - b.rank ||
        byPriorityAndAge(a.row, b.row);
}

function byPriorityAndAge(a: DeliveryRow, b: DeliveryRow): number {
    return a.priority - b.priority || a.dueAt.getTime() - b.dueAt.getTime() || a.seq - b.seq;
}
