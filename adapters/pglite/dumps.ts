import type { Ticker } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { isEntryName } from '../../lib/tar.ts';
import type { Executor } from '../../lib/transaction.ts';
import { assertNothingErased, filesOfBodies, leaveNoErasedBodies } from './erased-bodies.ts';
import type { Maintenance } from './maintenance.ts';
import { onlineBackup } from './online-backup.ts';

/** How a database is copied. */
export interface DumpOptions {
    /** The folder that names in the tar file begin with, at most 40 letters, digits, `_`, `.`, `-` and `/`; none unless it is given. */
    readonly prefix?: string;
}

/** What is copied, and what the copies are made with. */
export interface DumpParts {
    readonly database: Executor;
    /** The data directory. */
    readonly files: string;
    readonly maintenance: Pick<Maintenance, 'pause'>;
    /** Drives the look at whether a copy is still read. */
    readonly ticker: Ticker;
    /** Whether the database is being closed. */
    ended(): boolean;
}

type Copy = AsyncGenerator<Uint8Array, void, undefined>;

/** With it names of the database, of which none has 60 characters, fit into an entry. */
const MAX_PREFIX = 40;

/** Copies of a database, one after the other: what `dump` of a database in a folder is. */
export function dumps({ database, files, maintenance, ticker, ended }: DumpParts): (options?: DumpOptions) => Copy {
    let isCopied = false;

    async function* dump({ prefix }: DumpOptions): Copy {
        if (prefix !== undefined && !(prefix.length <= MAX_PREFIX && isEntryName(prefix))) {
            const message = `dump options: prefix must be a name of at most ${MAX_PREFIX} letters, digits, _, ., - and /`;
            throw new ScanwireError('INVALID_INPUT', message, { field: 'prefix' });
        }
        if (isCopied) {
            throw new ScanwireError('CONFLICT', 'The embedded database is being copied already: one copy after the other');
        }

        isCopied = true;
        let resume: (() => void) | null = null;
        try {
            const erased = await leaveNoErasedBodies(database);
            // A checkpoint would take away the log that the copy needs.
            resume = await maintenance.pause();
            const judge = () => assertNothingErased(database, erased);
            const pagesToClear = await filesOfBodies(database);
            yield* onlineBackup({ database, files, ended, judge, pagesToClear, ...(prefix !== undefined && { prefix }) });
        } finally {
            resume?.();
            isCopied = false;
        }
    }

    return (options = {}) => whileRead(dump(options), ticker);
}

/** How often it is looked whether anything was taken of a copy, in milliseconds, and how often in vain before it is given up. */
const LOOK_EVERY = 60_000;
const MAX_LOOKS = 10;

/** What the copy has, until its reader takes nothing of it for ten minutes: it is ended then, and the reader is told so when it asks again. */
async function* whileRead(copy: Copy, ticker: Ticker): Copy {
    let isLeft = false;
    let looks = 0;
    let ended: Promise<unknown> | null = null;
    const stop = ticker(() => {
        looks += isLeft ? 1 : 0;
        if (looks >= MAX_LOOKS) {
            stop();
            ended ??= copy.return().catch(() => {});
        }
    }, LOOK_EVERY);

    try {
        for (let next = await copy.next(); next.done !== true; next = await copy.next()) {
            [isLeft, looks] = [true, 0];
            yield next.value;
            isLeft = false;
            if (ended !== null) {
                await ended;
                const message = `The copy of the embedded database was given up: nothing of it was taken for ${(MAX_LOOKS * LOOK_EVERY) / 60_000} minutes`;
                throw new ScanwireError('UNAVAILABLE', message);
            }
        }
    } finally {
        stop();
        await copy.return();
    }
}
