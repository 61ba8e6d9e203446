import type { PGlite } from '@electric-sql/pglite';

/** How long others wait for such a statement, in milliseconds: with what it takes to end then, less than a tenth of a second. */
const PATIENCE = 50;
/** How often it is looked whether anybody waits, in milliseconds. */
const LOOK_EVERY = 2;

/** What a session is asked while one of its statements runs. */
export interface Waiting {
    /** Takes what has been asked meanwhile. @returns Whether others than the statement that runs wait for the session. */
    look(): boolean;
    /** In milliseconds, monotonic. */
    now(): number;
}

/** Two flags in the memory of PostgreSQL, at which it looks between two rows or pages: what a signal sets in a server. */
interface Interrupts {
    readonly HEAPU8: Uint8Array;
    readonly _QueryCancelPending?: number;
    readonly _InterruptPending?: number;
}

type FileOperation = (...values: unknown[]) => unknown;

/**
 * Lets statements of the database be cut off. It has one thread, which hears of nothing while a statement runs, but reads and writes files through
 * us: there we look whether others wait.
 *
 * @returns Runs something, cut off as soon as others have waited for it for {@link PATIENCE}.
 */
export function givingWay({ Module }: Pick<PGlite, 'Module'>, { look, now }: Waiting): (run: () => Promise<void>) => Promise<void> {
    const interrupts = Module as unknown as Interrupts;
    const files = Module.FS as unknown as Record<'read' | 'write', FileOperation>;
    let lookAt = Number.POSITIVE_INFINITY;
    let waitingSince: number | null = null;

    /** Must not throw: PGlite would take it for the end of the statement. */
    function lookAround(): void {
        const at = now();
        lookAt = at + LOOK_EVERY;
        waitingSince ??= look() ? at : null;
        if (waitingSince !== null && at - waitingSince >= PATIENCE) {
            // Once: what ends the statement must not be ended itself.
            lookAt = Number.POSITIVE_INFINITY;
            setPending(interrupts, 1);
        }
    }

    for (const name of ['read', 'write'] as const) {
        const operation = files[name];
        files[name] = (...values) => {
            if (lookAt !== Number.POSITIVE_INFINITY && now() >= lookAt) {
                lookAround();
            }
            return operation.apply(files, values);
        };
    }

    return async (run) => {
        waitingSince = null;
        lookAt = now();
        try {
            await run();
        } finally {
            lookAt = Number.POSITIVE_INFINITY;
            // One that ended just before it looked must not leave it to the next.
            setPending(interrupts, 0);
        }
    };
}

/** The view of the memory is another one when it has grown. A PGlite that does not say where the flags are cuts nothing off. */
function setPending(interrupts: Interrupts, value: 0 | 1): void {
    const { HEAPU8, _QueryCancelPending, _InterruptPending } = interrupts;
    if (_QueryCancelPending !== undefined && _InterruptPending !== undefined) {
        HEAPU8[_QueryCancelPending] = value;
        HEAPU8[_InterruptPending] = value;
    }
}
