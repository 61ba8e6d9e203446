import { seeded } from '../support/seeded.ts';
import { fuzzReader } from './fuzz-reader.ts';
import { fuzzResponse } from './fuzz-response.ts';

/** Reads the input of this seed, a file of records or a response. */
export async function fuzzOne(seed: number): Promise<void> {
    const random = seeded(seed);
    await (random() < 0.5 ? fuzzReader(random) : fuzzResponse(random));
}
