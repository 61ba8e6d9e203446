import { ScanwireError } from '../../../lib/errors.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { within } from '../../../lib/within.ts';
import { guarded, type Patience } from '../database.ts';
import { silent } from '../database-errors.ts';

/** Milliseconds for which a statement beside is waited for, so that a session can be kept alive by the pool in time if the connection is silent. */
const BESIDE_FOR = 2_000;

/** A connection over which statements of two kinds go, one at a time. */
export interface SharedConnection extends Executor {
    /** Resolves with undefined where the connection is not free, does not answer soon, or refuses what the pool may take. */
    beside<Row>(text: string, values?: unknown[]): Promise<{ rows: Row[]; rowCount: number | null } | undefined>;
    /** Whether anything beside was answered since this was asked last. */
    hasAnswered(): boolean;
}

/** @param watch How long it is waited for. */
export function shared(client: Executor, watch: Patience & { readonly statement: number }): SharedConnection {
    let outstanding: Promise<void> | null = null;
    /** Nobody waits for what is outstanding any more. */
    let isLate = false;
    let refuses = false;
    let hasAnswered = false;
    const oneByOne: Executor = {
        query: <Row>(text: string, values?: unknown[]) => {
            const answer = Promise.resolve(client.query<Row>(text, values));
            const free = (): void => {
                outstanding = null;
                isLate = false;
            };
            outstanding = answer.then(free, free);
            return answer;
        },
    };
    const patient = guarded(oneByOne, watch);
    const quick = guarded(oneByOne, { ...watch, statement: Math.min(watch.statement, BESIDE_FOR) });

    async function untilFree(timeout: number): Promise<void> {
        const late = (): Error => silent(`has not answered within ${timeout} ms`);
        await within(outstanding ?? Promise.resolve(), { timeout, late, signal: watch.signal });
    }

    return {
        async query<Row>(text: string, values?: unknown[]) {
            await untilFree(watch.statement);
            return await patient.query<Row>(text, values);
        },

        async beside<Row>(text: string, values?: unknown[]) {
            if (refuses || isLate) {
                return undefined;
            }
            try {
                await untilFree(BESIDE_FOR);
                const answer = await quick.query<Row>(text, values);
                hasAnswered = true;
                return answer;
            } catch (error) {
                isLate = outstanding !== null;
                // Whoever takes it all the same is asked from now on, or says what is wrong.
                refuses = !(error instanceof ScanwireError && error.code === 'UNAVAILABLE');
                return undefined;
            }
        },

        hasAnswered() {
            const has = hasAnswered;
            hasAnswered = false;
            return has;
        },
    };
}
