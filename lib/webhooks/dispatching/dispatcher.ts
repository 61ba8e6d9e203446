import type { DispatchResult, HandedOut } from '../deliveries/delivery-store.ts';
import { COLLECTOR_PATTERN } from '../exporters/exporter.ts';
import { unsentOutcome } from '../outcomes/outcome.ts';
import type { ReadAhead } from '../sending/read-ahead.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { DeliveryJob } from './delivery-queue.ts';
import { type EndedFor, type LeftDeliveries, leftDeliveries, sooner } from './left-deliveries.ts';
import { lostDeliveries } from './lost-deliveries.ts';
import type { Listening } from './outlook.ts';
import { type HandedOutAfterStep, replaySteps } from './replay-steps.ts';
import { type HandOutOptions, RESERVATION_TIMES } from './reservations.ts';
import { adding } from './turns.ts';

/**
 * Moves due deliveries from their rows into the queue, a window of each exporter at a time. Any number of dispatchers may
 * run on the same store.
 */
export interface Dispatcher {
    start(): void;
    /** Something became due: looks for it now. */
    wake(): void;
    /** Deliveries for these exporters were accepted for which there was no room: looks for them, later where the last looks were in vain. */
    wakeFor(exporterIds: readonly string[]): void;
    /** Something that was lost may be free to be handed out once more: sweeps now. */
    sweep(): void;
    /** A replay was begun: looks for it now. */
    replay(): void;
    /**
     * An attempt for this exporter has ended after `took` milliseconds: hands out what may have waited for its place in the window. For an ordered one the
     * next delivery of its order key may have become due.
     */
    attemptEnded(exporter: EndedFor, took: number): void;
    /** The options for handing out at once what is accepted now; undefined when it has to wait in its rows. */
    handOutOptions(): Required<HandOutOptions> | undefined;
    /** Puts what was handed out into the queue. What fails is reported and tried again. */
    add(handedOut: readonly HandedOut[]): void;
    /** Resolves once what is being handed out is in the queue. */
    stop(): Promise<void>;
}

/** How often rows are read when nobody wakes the dispatcher, in milliseconds, unless it is known that there is nothing to do. */
const POLL_EVERY = 1_000;

/** Deliveries moved per statement. */
const BATCH = 500;

/**
 * Milliseconds by which later attempts are spread: one every `apart`, but all `within` this time, in turns that are `turnEvery` apart and may have
 * several. Attempts that begin together fail together, again at each retry, and would keep new events of that moment waiting.
 */
const SPREAD = { apart: 4, within: 600, turnEvery: 20 } as const;

/** In how many milliseconds so many are added, and at least how many between two turns. @param step What it was while a replay that ends was under way. */
function spreadOf(count: number, step: number | null): [milliseconds: number, every?: number] {
    return step === null ? [Math.min(count * SPREAD.apart, SPREAD.within), SPREAD.turnEvery] : [step];
}

/** A dispatcher that is stopped. What fails is reported and tried again at the next poll. */
export function dispatcher(context: DispatcherContext): Dispatcher {
    const left = leftDeliveries(context.monotonic);
    const { start, handOut, sweepNext, replayNext, add, added, isBehind, isQuiet } = handingOut(context, left, () => stopped);
    const { window, rate, breakerAfter, monotonic, onError } = context;
    let running: Promise<void> | null = null;
    let woken = false;
    let stopped = true;
    let poll: NodeJS.Timeout | undefined;
    const alarm = alarmOf(wake, monotonic);
    let listening: Listening | undefined;

    async function handOutUntilQuiet(): Promise<void> {
        do {
            woken = false;
            alarm.clear();
            await handOut().then(wakeWithin).catch(onError);
        } while (woken && !stopped);
    }

    /** @param milliseconds Null for not at all. */
    function wakeWithin(milliseconds: number | null): void {
        if (milliseconds !== null && !stopped) {
            alarm.within(milliseconds);
        }
    }

    function wake(): void {
        woken = true;
        if (stopped || running !== null) {
            return;
        }

        running = handOutUntilQuiet().finally(() => {
            running = null;
            if (woken) {
                wake();
            }
        });
    }

    /** @param milliseconds As of {@link wakeWithin}. */
    function wakeSoon(milliseconds: number | null): void {
        if (milliseconds === 0) {
            wake();
        } else {
            wakeWithin(milliseconds);
        }
    }

    return {
        wake,

        sweep() {
            sweepNext();
            wake();
        },

        replay() {
            replayNext();
            wake();
        },

        wakeFor: (exporterIds) => wakeSoon(left.noteLeft(exporterIds)),

        attemptEnded: (exporter, took) => wakeSoon(left.noteAttemptEnd(exporter, took)),

        // `accept` cannot count against a rate: where there is one, only `dispatch` hands out.
        handOutOptions: () =>
            stopped || isBehind() || rate !== null ? undefined : { window, breakerAfter, beginWithin: RESERVATION_TIMES.beginWithin },

        add,

        start() {
            stopped = false;
            start();
            poll = setInterval(() => (listening?.isListening?.() === true && isQuiet()) || wake(), POLL_EVERY);
            listening = context.deliveries.listen?.(wake, context.onError);
            wake();
        },

        async stop() {
            stopped = true;
            clearInterval(poll);
            alarm.clear();
            const closed = listening?.close();
            listening = undefined;
            await Promise.all([running, closed]);
            await added().catch(onError);
        },
    };
}

/** Rings once, as early as anybody has asked for since. */
function alarmOf(ring: () => void, monotonic: () => number) {
    let timer: NodeJS.Timeout | undefined;
    let ringsAt = Number.POSITIVE_INFINITY;

    function clear(): void {
        clearTimeout(timer);
        ringsAt = Number.POSITIVE_INFINITY;
    }

    return {
        clear,

        within(milliseconds: number): void {
            const now = monotonic();
            // A timer stands still while the machine is suspended: what is overdue rings now.
            const at = ringsAt <= now ? now : now + milliseconds;
            if (at === now || at < ringsAt) {
                clear();
                ringsAt = at;
                timer = setTimeout(ring, at - now);
            }
        },
    };
}

type DispatcherContext = Pick<
    WebhooksContext,
    'deliveries' | 'queue' | 'lookout' | 'monotonic' | 'claimDuration' | 'newId' | 'onEvent' | 'onError'
> &
    Pick<WebhooksContext, 'onWarning' | 'window' | 'rate' | 'breakerAfter' | 'breakerRules'> & { readonly readAhead: ReadAhead };

interface HandingOut {
    /** Call it when the process starts: until then it has not watched the store. */
    start(): void;
    /** @returns After how many milliseconds to hand out again, if that is before the poll; else null. */
    handOut(): Promise<number | null>;
    /** The next hand-out sweeps. */
    sweepNext(): void;
    /** The next hand-out looks for replays. */
    replayNext(): void;
    /** Adds jobs, before them those that could not be added earlier. What fails is reported and tried again. */
    add(handedOut: readonly HandedOut[]): void;
    /** Adds at once what waits for its turn; resolves when that is done. */
    added(): Promise<void>;
    /** Whether jobs wait for the queue. */
    isBehind(): boolean;
    /** Whether nothing is due, in flight or replayed, as far as the store has told, but for what applications commit meanwhile. */
    isQuiet(): boolean;
}

/** Sweeps when it is time, and puts what is lost or due into the queue. */
function handingOut(context: DispatcherContext, left: LeftDeliveries, isStopped: () => boolean): HandingOut {
    const { deliveries, queue, lookout, window, rate, breakerAfter, readAhead, onError } = context;
    /** Jobs of deliveries that are marked `queued` in their rows, but are not in the queue yet. */
    let unqueued: readonly DeliveryJob[] = [];
    /** Handed out for another attempt than the delivery's first: retries, but also after faults alone, and single replays. A look that fails leaves them to the next. */
    const later: HandedOut[] = [];
    const { add, addInTurns, added } = adding(enqueue, onError);
    const lost = lostDeliveries(context, BATCH);
    const replays = replaySteps(context, addInTurns);
    const options = { window, breakerAfter, beginWithin: RESERVATION_TIMES.beginWithin, limit: BATCH, ...(rate !== null && { rate }) };

    /** Adds what is handed out. With `laterInTurns`, what is `later` is not added but returned, to be added in turns. */
    async function dispatch(laterInTurns: boolean): Promise<HandedOutAfterStep & { readonly again: number | null }> {
        // Of a look that has failed. Nobody adds them in turns then.
        await enqueue(laterInTurns ? [] : later.splice(0));
        let atOnce = 0;
        let again: number | null;
        let result: DispatchResult;
        do {
            left.dispatchBegins();
            result = await lost.heardBy(deliveries.dispatch(options));
            // Attempts may end all the time: what is `later`, lost or replayed does not wait for a look that has missed none.
            again = left.dispatchEnds(result);
            const now = result.handedOut.filter(({ attempt }) => !laterInTurns || attempt === 1);
            later.push(...result.handedOut.filter((one) => !now.includes(one)));
            atOnce += now.length;
            await enqueue(now);
        } while (result.handedOut.length === BATCH);
        return { atOnce, inTurns: later.splice(0), again };
    }

    async function enqueue(handedOut: readonly HandedOut[]): Promise<void> {
        const jobs: DeliveryJob[] = [...unqueued, ...handedOut.filter(isSendable)];
        unqueued = [];
        if (jobs.length > 0) {
            lookout.handedOut();
            await queue.add(jobs).catch((error: unknown) => {
                // A failed call may have added them all the same.
                unqueued = [...jobs.map((job) => ({ ...job, reservation: null })), ...unqueued];
                throw error;
            });
        }
        // The store may refuse it: then the sweep finds them again, and no job is to wait for that.
        await lost.heardBy(endUnsendable(handedOut, context)).catch(onError);
    }

    return {
        add,
        added: () => enqueue(later.splice(0)).then(added),
        isBehind: () => unqueued.length > 0,
        isQuiet: () => lookout.rulesOut('inFlight') && lookout.rulesOut('replays') && !lookout.hasAccepted() && left.isNothingDue(),

        start: lost.watch,
        sweepNext: lost.now,
        replayNext: replays.now,

        async handOut() {
            await enqueue([]);
            await lost.find(enqueue, isStopped);
            const advanced = await lost.heardBy(replays.advance());
            const isReplaying = replays.areUnfinished();
            const { again, ...dispatched } = await dispatch(advanced || !isReplaying);
            await readAhead(dispatched.inTurns);
            if (!isReplaying && dispatched.inTurns.length > 0) {
                addInTurns(dispatched.inTurns, ...spreadOf(dispatched.inTurns.length, replays.lastStep()));
            }
            return sooner(replays.addUntilNextStep(advanced, dispatched), again);
        },
    };
}

/** Whether a worker may have the name of its collector: SQL may have written an impossible one, past all checks. */
function isSendable({ collector }: HandedOut): boolean {
    return COLLECTOR_PATTERN.test(collector);
}

/** Ends, with a reason, those that are not {@link isSendable}. Others need not wait for them. */
async function endUnsendable(
    all: readonly HandedOut[],
    { deliveries, claimDuration, newId, breakerRules }: DispatcherContext,
): Promise<void> {
    const unsendable = all.filter((one) => !isSendable(one));
    if (unsendable.length === 0) {
        return;
    }

    const requests = unsendable.map(({ deliveryId, reservation }) => {
        return { deliveryId, token: newId(), duration: claimDuration, ...(reservation !== null && { reservation: reservation.token }) };
    });
    const claims = (await deliveries.claim(requests, null)).filter((claim) => claim !== null);
    const result = {
        code: 'invalid_exporter',
        status: null,
        detail: 'No worker can have the name of its collector',
        retryAfter: null,
    } as const;
    const ending = { outcome: unsentOutcome(result), next: { state: 'exhausted' }, health: 'none', pause: null, stopReason: null } as const;
    const outcomes = claims.map(({ deliveryId, token, exporter }) => {
        return { deliveryId, exporterId: exporter.id, token, begunAt: null, ...ending };
    });
    await deliveries.recordOutcomes(outcomes, breakerRules);
}
