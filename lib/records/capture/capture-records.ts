import Joi from 'joi';
import { atOnce } from '../../at-once.ts';
import { checked } from '../../checked.ts';
import type { HttpsRecord } from '../record.ts';
import { CaptureFailure } from './capture-failure.ts';
import type { CaptureOptions } from './capture-options.ts';
import { recordCapture } from './capture-record.ts';
import type { CaptureTarget } from './capture-target.ts';

export interface CaptureManyOptions extends CaptureOptions {
    /** Captures under way at once: 1 to 1,000, 64 by default. */
    readonly concurrency?: number;
    /** Ends the iteration with its reason, and what is under way. */
    readonly signal?: AbortSignal;
}

/** What came of a target, which is the value that was given. */
export type CaptureResult<Target> = { readonly target: Target } & (
    | { readonly ok: true; readonly record: HttpsRecord }
    | { readonly ok: false; readonly failure: CaptureFailure }
);

const concurrencySchema = Joi.number().integer().min(1).max(1000).default(64).label('concurrency');

/**
 * Captures many targets, some at once, and gives the results as they come in. A target is taken from the source only when there is
 * room for it, so memory does not depend on their number, and results that nobody takes hold up the rest. Leaving the iteration
 * early closes every connection.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot be, the signal's reason, or what the source throws.
 */
export async function* captureRecords<Target extends string | CaptureTarget>(
    targets: Iterable<Target> | AsyncIterable<Target>,
    { concurrency, signal, ...options }: CaptureManyOptions,
): AsyncGenerator<CaptureResult<Target>, void, undefined> {
    const most = checked<number>(concurrencySchema, concurrency, { subject: 'capture options', code: 'MISCONFIGURED' });
    const capture = recordCapture(options);

    const result = async (target: Target, stop: AbortSignal): Promise<CaptureResult<Target>> => {
        try {
            return { target, ok: true, record: await capture(target, stop) };
        } catch (error) {
            if (error instanceof CaptureFailure) {
                return { target, ok: false, failure: error };
            }

            throw error;
        }
    };

    yield* atOnce(targets, result, { most, signal });
}
