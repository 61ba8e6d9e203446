import type { Clock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { processWarning } from '../process-warning.ts';
import type { ApiKeysOptions } from './api-keys.ts';
import type { StoredApiKey } from './store.ts';

const TOUCH_INTERVAL_MS = 60_000;

/** Of this process, for what it measures itself: to ask the store at each request would cost a query. */
function elapsedBy(clock: Clock | undefined): () => number {
    return clock === undefined ? () => performance.now() : () => clock().getTime();
}

/** Reports once a minute at most: what fails for one key fails for all. */
export function reporting({
    clock,
    onError = ({ message }) => processWarning(message),
}: Pick<ApiKeysOptions, 'clock' | 'onError'>): (error: ScanwireError, at?: number) => void {
    const elapsed = elapsedBy(clock);
    let toldAt = Number.NEGATIVE_INFINITY;
    return (error, at = elapsed()) => {
        if (at - toldAt >= TOUCH_INTERVAL_MS) {
            toldAt = at;
            try {
                onError(error);
            } catch (thrown) {
                warned(thrown);
            }
        }
    };
}

/** Records the use of a key at most once a minute, in the background: a request neither waits for it nor fails with it. */
export function touching(
    { store, clock }: ApiKeysOptions,
    time: () => Promise<Date>,
    report: (error: ScanwireError, at: number) => void,
    firstUsed: (id: string) => void,
): (key: StoredApiKey) => void {
    const elapsed = elapsedBy(clock);
    const nextAt = new Map<string, number>();

    async function note({ id, lastUsedAt }: StoredApiKey, at: number): Promise<void> {
        try {
            const now = await time();
            const early = lastUsedAt === null ? 0 : TOUCH_INTERVAL_MS - (now.getTime() - lastUsedAt.getTime());
            if (early > 0) {
                // Another process has noted a use.
                nextAt.set(id, at + Math.min(early, TOUCH_INTERVAL_MS));
            } else {
                await store.touch(id, now);
            }
        } catch (error) {
            report(unnoted(error), at);
        }
    }

    return (key) => {
        const at = elapsed();
        const next = nextAt.get(key.id);
        if (next !== undefined && at < next) {
            return;
        }

        nextAt.set(key.id, at + TOUCH_INTERVAL_MS);
        if (key.lastUsedAt === null && next === undefined) {
            firstUsed(key.id);
        }
        void note(key, at);
    };
}

function unnoted(cause: unknown): ScanwireError {
    const code = cause instanceof ScanwireError ? cause.code : 'UNAVAILABLE';
    const message = cause instanceof Error ? cause.message : String(cause);
    return new ScanwireError(code, `Cannot note when API keys were used last: ${message}`, { cause });
}

/** Warns, as nobody else can be told. */
export function warned(error: unknown): void {
    processWarning(`What is told of API keys was not heard: ${error instanceof Error ? error.message : String(error)}`);
}
