import { ScanwireError } from './errors.ts';

/**
 * Lets many callers share one statement: what is called while all lanes run goes together into the next run. So a lone caller never
 * waits and a crowd shares round trips.
 *
 * @param run Resolves with the results in the order of its items. Where there are fewer, but one at least, the items without a result go
 *     into the next run.
 * @param limit Maximum number of items in one run.
 * @param lanes Maximum number of runs at once. With a second one, who comes during a run need not wait for its end; a third gives little
 *     more, and leaves less to share.
 */
export function batched<Item, Result>(
    run: (items: readonly Item[]) => Promise<readonly Result[]>,
    limit: number,
    lanes = 1,
): (item: Item) => Promise<Result> {
    return batchedInTurn(run, (waiting) => waiting.slice(0, limit), lanes).add;
}

/** Items that share statements as {@link batched} says, those together that may be run now. */
export interface BatchedInTurn<Item, Result> {
    add(item: Item): Promise<Result>;
    /** Items that had to wait may be run now. */
    proceed(): void;
}

/** @param next Those of the items that wait which go into the next run, in their order there; none while all have to wait. If it throws, all of them are rejected. */
export function batchedInTurn<Item, Result>(
    run: (items: readonly Item[]) => Promise<readonly Result[]>,
    next: <Waiting extends { readonly item: Item }>(waiting: readonly Waiting[]) => readonly Waiting[],
    lanes = 1,
): BatchedInTurn<Item, Result> {
    interface Call {
        readonly item: Item;
        resolve(result: Result): void;
        reject(error: unknown): void;
    }

    let pending: Call[] = [];
    let running = 0;

    async function drain(): Promise<void> {
        running += 1;
        try {
            for (let batch = take(); batch.length > 0; batch = take()) {
                await settle(batch);
            }
        } catch (error) {
            for (const { reject } of pending.splice(0)) {
                reject(error);
            }
        }
        running -= 1;
    }

    function take(): Call[] {
        const batch = new Set(pending.length === 0 ? [] : next(pending));
        pending = pending.filter((call) => !batch.has(call));
        return [...batch];
    }

    async function settle(batch: Call[]): Promise<void> {
        try {
            const results = await run(batch.map(({ item }) => item));
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

    function proceed(): void {
        if (running < lanes) {
            void drain();
        }
    }

    return {
        add: (item) =>
            new Promise<Result>((resolve, reject) => {
                pending.push({ item, resolve, reject });
                proceed();
            }),

        proceed,
    };
}
