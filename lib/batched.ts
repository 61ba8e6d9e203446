import { setImmediate } from 'node:timers/promises';
import { ScanwireError } from './errors.ts';
import { wakeUps } from './within.ts';

/**
 * Lets many callers share one statement: what is called while no further run may begin goes together into the next run. So a lone caller never
 * waits and a crowd shares round trips.
 *
 * @param run Resolves with the results in the order of its items. Where there are fewer, but one at least, the items without a result go
 *     into the next run.
 * @param limit Maximum number of items in one run.
 * @param runs Maximum number of runs at once. With a second one, who comes during a run need not wait for its end; a third gives little
 *     more, and leaves less to share.
 */
export function batched<Item, Result>(
    run: (items: readonly Item[]) => Promise<readonly Result[]>,
    limit: number,
    runs = 1,
): (item: Item) => Promise<Result> {
    return readyBatches(run, (waiting) => waiting.slice(0, limit), { runs }).add;
}

/** Items that share statements as {@link batched} says, those together that may be run now. */
export interface ReadyBatches<Item, Result> {
    add(item: Item): Promise<Result>;
    /** Items that had to wait may be run now. */
    proceed(): void;
}

/** How many runs go on at once, and when more may: one that says nothing for long may never end. */
export interface Concurrency {
    readonly runs: number;
    /** Milliseconds after which a run that has not ended holds up no others any more: another begins beside it. Absent: however long it takes. */
    readonly silentAfter?: number;
    /** Maximum number of runs at once, with those that are silent. */
    readonly runsWithSilent?: number;
    /** Whether an item that may run at once waits for the end of the code that adds it, so that all that is added until then shares the run. */
    readonly sharesMoment?: boolean;
}

const ONE_RUN: Concurrency = { runs: 1 };

/**
 * @param next Those of the items that wait which go into the next run, in their order there; none while all have to wait. If it throws, all of
 *     them are rejected. It is told which items other runs have.
 */
export function readyBatches<Item, Result>(
    run: (items: readonly Item[]) => Promise<readonly Result[]>,
    next: <Waiting extends { readonly item: Item }>(waiting: readonly Waiting[], underWay: Iterable<Waiting>) => readonly Waiting[],
    { runs, silentAfter, runsWithSilent = runs, sharesMoment = false }: Concurrency = ONE_RUN,
): ReadyBatches<Item, Result> {
    interface Call {
        readonly item: Item;
        resolve(result: Result): void;
        reject(error: unknown): void;
    }

    let pending: Call[] = [];
    const underWay = new Set<Call>();
    let running = 0;
    let silent = 0;

    async function drain(): Promise<void> {
        running += 1;
        try {
            for (let batch = take(); batch.length > 0; batch = running - silent > runs ? [] : take()) {
                await settleAll(batch);
            }
        } catch (error) {
            for (const { reject } of pending.splice(0)) {
                reject(error);
            }
        }
        running -= 1;
    }

    function take(): readonly Call[] {
        const batch = new Set(pending.length === 0 ? [] : next(pending, underWay));
        pending = pending.filter((call) => !batch.has(call));
        return [...batch];
    }

    async function settleAll(batch: readonly Call[]): Promise<void> {
        for (const call of batch) {
            underWay.add(call);
        }
        await settle([...batch]);
        for (const call of batch) {
            underWay.delete(call);
        }
    }

    async function settle(batch: Call[]): Promise<void> {
        try {
            const results = await runAudibly(batch.map(({ item }) => item));
            pending = [...batch.splice(results.length), ...pending];
            for (const [index, { resolve }] of batch.entries()) {
                resolve(results[index] as Result);
            }
        } catch (error) {
            // one bad item must not take its neighbours down; a store that is away takes them all
            const isForAll = error instanceof ScanwireError && error.code === 'UNAVAILABLE';
            for (const call of batch) {
                if (isForAll || batch.length === 1) {
                    call.reject(error);
                } else {
                    await settle([call]);
                }
            }
        }
    }

    /** Lets another run begin beside this one when nothing is heard of the run for too long. */
    async function runAudibly(items: readonly Item[]): Promise<readonly Result[]> {
        if (silentAfter === undefined) {
            return await run(items);
        }

        let isSilent = 0;
        const timer = setTimeout(() => {
            isSilent = 1;
            silent += 1;
            proceed();
        }, silentAfter);
        try {
            return await run(items);
        } finally {
            clearTimeout(timer);
            silent -= isSilent;
        }
    }

    function proceed(): void {
        if (running - silent < runs && running < runsWithSilent) {
            void drain();
        }
    }

    return {
        add: (item) =>
            new Promise<Result>((resolve, reject) => {
                pending.push({ item, resolve, reject });
                if (sharesMoment) {
                    queueMicrotask(proceed);
                } else {
                    proceed();
                }
            }),

        proceed,
    };
}

/**
 * What a source yields, in batches of what came while the batch before was worked on: a source that trickles does not wait for a
 * batch to fill, and one that pours makes large ones. At most one batch is held besides the one that is worked on. When the source
 * fails, what came before comes out first.
 *
 * @param limits A batch grows until it has `maxItems` items, or its items have `maxSize`.
 */
export async function* batchesOf<Item>(
    source: AsyncIterable<Item>,
    { maxItems, maxSize, sizeOf }: { readonly maxItems: number; readonly maxSize: number; sizeOf(item: Item): number },
): AsyncGenerator<readonly Item[], void, undefined> {
    // The batch that grows, and the side that waits for the other; they never wait both.
    const next = { items: [] as Item[], size: 0, isLast: false, isAbandoned: false };
    const { wake, change } = wakeUps();

    const fill = async (): Promise<void> => {
        for await (const item of source) {
            next.items.push(item);
            next.size += sizeOf(item);
            wake();
            while (!next.isAbandoned && (next.items.length >= maxItems || next.size >= maxSize)) {
                await change();
            }

            if (next.isAbandoned) {
                return;
            }
        }
    };
    const filled = fill().finally(() => {
        next.isLast = true;
        wake();
    });
    filled.catch(() => undefined);

    try {
        while (!next.isLast || next.items.length > 0) {
            if (next.items.length === 0) {
                await change();
                // What came with the first item comes along.
                await setImmediate();
                continue;
            }

            const items = next.items.splice(0);
            next.size = 0;
            wake();
            yield items;
        }

        await filled;
    } finally {
        next.isAbandoned = true;
        wake();
    }
}
