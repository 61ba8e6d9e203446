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
    interface Call {
        readonly item: Item;
        resolve(result: Result): void;
        reject(error: unknown): void;
    }

    const pending: Call[] = [];
    let running = 0;

    async function drain(): Promise<void> {
        running += 1;
        while (pending.length > 0) {
            await settle(pending.splice(0, limit));
        }

        running -= 1;
    }

    async function settle(batch: Call[]): Promise<void> {
        try {
            const results = await run(batch.map(({ item }) => item));
            pending.unshift(...batch.splice(results.length));
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

    return (item) =>
        new Promise<Result>((resolve, reject) => {
            pending.push({ item, resolve, reject });
            if (running < lanes) {
                void drain();
            }
        });
}
