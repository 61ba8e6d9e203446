import { workerData } from 'node:worker_threads';
import { seeded } from '../support/seeded.ts';
import { fuzzReader } from './fuzz-reader.ts';
import { fuzzResponse } from './fuzz-response.ts';

interface Share {
    readonly first: number;
    readonly end: number;
    readonly step: number;
    readonly at: Int32Array;
}

const { first, end, step, at } = workerData as Share;
for (let seed = first; seed < end; seed += step) {
    Atomics.store(at, 0, seed);
    const random = seeded(seed);
    try {
        await (random() < 0.5 ? fuzzReader(random) : fuzzResponse(random));
    } catch (error) {
        throw new Error(`npm run fuzz -- --seed ${seed} --inputs 1`, { cause: error });
    }
}
