import { workerData } from 'node:worker_threads';
import { fuzzOne } from './fuzz-one.ts';

interface Share {
    readonly first: number;
    readonly end: number;
    readonly step: number;
    readonly at: Int32Array;
}

const { first, end, step, at } = workerData as Share;
for (let seed = first; seed < end; seed += step) {
    Atomics.store(at, 0, seed);
    try {
        await fuzzOne(seed);
    } catch (error) {
        throw new Error(`npm run fuzz -- --seed ${seed} --inputs 1`, { cause: error });
    }
}
