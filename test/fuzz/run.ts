/*
 * `npm run fuzz`: mutated files of records and mutated responses, a million of each kind together unless told otherwise, by a worker
 * for each core. A worker that stands still for ten seconds has found an input that hangs.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { anySeed, count, scriptCommand, seed } from '../support/script-command.ts';

const STILL_MS = 10_000;
const EVERY_MS = 1_000;

const { inputs, seed: firstSeed } = scriptCommand(
    'fuzz',
    'Reads mutated files of records and mutated responses: nothing may throw or hang.',
)
    .option('--inputs <count>', 'inputs of all kinds together', count, 1_000_000)
    .option('--seed <seed>', 'of the first input', seed, anySeed())
    .parse()
    .opts<{ inputs: number; seed: number }>();

const workers = Math.min(availableParallelism(), inputs);

interface Progress {
    readonly seed: number;
    readonly changedAt: number;
}

const startedAt = performance.now();
console.log(`${inputs} inputs, seeds from ${firstSeed}, ${workers} workers`);
await Promise.all(Array.from({ length: workers }, (_, index) => work(index)));
console.log(`${inputs} inputs read in ${((performance.now() - startedAt) / 1000).toFixed(0)} s: no throw, no hang`);

/** The seeds are dealt out in turn. The worker writes the one it is at into shared memory. */
function work(index: number): Promise<void> {
    const at = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
        workerData: { first: firstSeed + index, end: firstSeed + inputs, step: workers, at },
    });
    let last: Progress = { seed: -1, changedAt: performance.now() };

    return new Promise((resolve, reject) => {
        const watch = setInterval(() => {
            const seed = Atomics.load(at, 0);
            if (seed !== last.seed) {
                last = { seed, changedAt: performance.now() };
            } else if (performance.now() - last.changedAt > STILL_MS) {
                fail(new Error(`no end in sight: npm run fuzz -- --seed ${seed} --inputs 1`));
            }
        }, EVERY_MS);
        const fail = (error: Error): void => {
            clearInterval(watch);
            console.error(error);
            process.exit(1);
        };
        worker.on('error', fail);
        worker.on('exit', (code) => {
            clearInterval(watch);
            code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`));
        });
    });
}
