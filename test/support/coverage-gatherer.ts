/*
 * Loaded by `--import` before anything else: writes into the folder of `COVERAGE_FOLDER` which parts of our sources the process, and
 * each of its threads, have run by its end. What Node writes by itself has every package in it and the source map of every file.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';

/** Whose lines `coverage.ts` counts. It is not imported, since it would be one of the modules of each process. */
const COVERED = ['lib', 'plugins', 'adapters', 'cli'].map((name) => new URL(`../../${name}/`, import.meta.url).href);

const folder = process.env.COVERAGE_FOLDER;
if (folder !== undefined) {
    const session = new Session();
    session.connect();
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    process.on('exit', () =>
        session.post('Profiler.takePreciseCoverage', (error, { result }) => {
            if (error !== null) {
                throw error;
            }

            const ours = result.filter(({ url }) => COVERED.some((start) => url.startsWith(start)));
            mkdirSync(folder, { recursive: true });
            writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify({ result: ours }));
        }),
    );
}
