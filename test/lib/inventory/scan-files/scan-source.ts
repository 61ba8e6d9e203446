import { ScanwireError } from '../../../../lib/errors.ts';
import { collect } from '../../../support/collect.ts';

/** A source of the given parts, each its own chunk. */
export async function* bytes(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
    for (const part of parts) {
        yield typeof part === 'string' ? Buffer.from(part) : part;
    }
}

/** The error that reading ends with. */
export async function refusal(source: AsyncIterable<unknown>): Promise<ScanwireError> {
    try {
        await collect(source);
    } catch (error) {
        if (error instanceof ScanwireError) {
            return error;
        }

        throw error;
    }

    throw new Error('Nothing was refused');
}
