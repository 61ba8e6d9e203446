import { ScanwireError } from '../errors.ts';

/**
 * Lets many callers share one statement. An idle call runs at once; what arrives while one runs goes together into the next.
 * So a lone caller never waits and a crowd shares round trips.
 *
 * @param run Answers in the order of its items.
 * @param limit At most so many items in one run.
 */
export function batched<Item, Answer>(
    run: (items: readonly Item[]) => Promise<readonly Answer[]>,
    limit: number,
): (item: Item) => Promise<Answer> {
    interface Waiting {
        readonly item: Item;
        resolve(answer: Answer): void;
        reject(error: unknown): void;
    }

    const waiting: Waiting[] = [];
    let running = false;

    async function drain(): Promise<void> {
        running = true;
        while (waiting.length > 0) {
            await settle(waiting.splice(0, limit));
        }

        running = false;
    }

    async function settle(batch: readonly Waiting[]): Promise<void> {
        try {
            const answers = await run(batch.map(({ item }) => item));
            for (const [index, { resolve }] of batch.entries()) {
                resolve(answers[index] as Answer);
            }
        } catch (error) {
            await refuse(batch, error);
        }
    }

    /** One bad item must not take its neighbours down; a store that is away takes them all. */
    async function refuse(batch: readonly Waiting[], error: unknown): Promise<void> {
        if (batch.length === 1 || (error instanceof ScanwireError && error.code === 'UNAVAILABLE')) {
            for (const { reject } of batch) {
                reject(error);
            }

            return;
        }

        for (const one of batch) {
            await settle([one]);
        }
    }

    return (item) =>
        new Promise<Answer>((resolve, reject) => {
            waiting.push({ item, resolve, reject });
            if (!running) {
                void drain();
            }
        });
}
