import fc from 'fast-check';
import { type Commanded, commandSequences, rareSequences, ratedSequences } from './commands.ts';
import { Deployment, EXPORTERS, type MakeStores, type Mutant, PLACES } from './deployment.ts';
import { DEADLY } from './receivers.ts';

/** What came of a seed. */
export interface Result {
    readonly seed: number;
    /** Of the trace: the same for the same seed. */
    readonly digest: string;
    /** What must not be and was, empty when all was well. */
    readonly violations: readonly string[];
    /** What was commanded. */
    readonly story: string;
    /** The end of the trace, up to what was found. */
    readonly trace: readonly string[];
}

/** How a seed is run. */
export interface SimulationOptions {
    readonly mutant?: Mutant;
    /** Looks for the shortest story that fails too. */
    readonly shrink?: boolean;
    /** Whether the story is made of what is rare because it takes long; of some seeds by default. */
    readonly rare?: boolean;
    /** Whether there is a rate for the deployment, and perhaps for exporters; of some seeds by default. */
    readonly rated?: boolean;
}

/** Milliseconds in which an exporter whose receiver is well is served, whatever is wrong with the others, when nothing else is. */
const NEIGHBOUR_WITHIN = 130_000;

/** A message that ends whoever sends it is set aside in so many milliseconds. */
const POISONED_WITHIN = 3_600_000;

/** The same, for one whose receiver is well again: the longest time between two probes, and the schedule's longest delay. */
const RECOVERED_WITHIN = 450_000;

/** What was lost with a process or by the queue is missed for so many milliseconds, and a look-up that hung for longer. */
const AFTERMATH = 25_000;

/** When all is well, an event gets to its receivers in so many milliseconds. */
const FRESH_WITHIN = 3_000;

/** A seed in so many is made of what is rare. */
const RARE = 50;

/** Of so many seeds one draws rates. */
const RATED = { every: 12, rest: 7 } as const;

/** Runs what comes out of a seed. Nothing is drawn from anywhere else. */
export async function simulate(seed: number, makeStores: MakeStores, options: SimulationOptions = {}): Promise<Result> {
    const { mutant = {}, shrink = false, rare = seed % RARE === 0, rated = !rare && seed % RATED.every === RATED.rest } = options;
    const sequences = rare ? rareSequences : rated ? ratedSequences : commandSequences;
    let last: Result | undefined;
    const property = fc.asyncProperty(sequences, async (commands) => {
        const deployment = await Deployment.open({ seed, rated }, makeStores, mutant);
        await deployment.timeline.inPlaceOfTimers(() => run(deployment, commands));
        last = resultOf(seed, deployment, String(commands));
        if (last.violations.length > 0) {
            throw new Violation(last.violations.join('\n'));
        }
    });
    const { errorInstance } = await fc.check(property, { seed, numRuns: 1, endOnFailure: !shrink });
    if (errorInstance instanceof Error && !(errorInstance instanceof Violation)) {
        throw errorInstance;
    }
    return last as Result;
}

/** Runs so many seeds from the first on, of what is not rare, and says what of each of them must not be. */
export async function failuresOf(
    stores: MakeStores,
    first: number,
    count: number,
    options: Pick<SimulationOptions, 'rated'> = {},
): Promise<readonly string[]> {
    const failures: string[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
        const { violations, story } = await simulate(seed, stores, { ...options, rare: false });
        failures.push(
            ...violations.map(
                (what) => `${what} (npm run simulate -- --seed ${seed}${options.rated === true ? ' --rated' : ''}: ${story})`,
            ),
        );
    }
    return failures;
}

/** That a simulation found something, which its result says. */
class Violation extends Error {}

async function run(deployment: Deployment, commands: Iterable<fc.AsyncCommand<Commanded, Deployment>>): Promise<void> {
    await deployment.setUp();
    const model: Commanded = { places: new Set(PLACES.slice(0, 2)), removed: new Set(), stopped: new Set() };
    await fc.asyncModelRun(() => ({ model, real: deployment }), commands);
    if (deployment.ledger.violations.length === 0) {
        await recover(deployment, model);
    }
}

/** What is wrong ends, first with the deployment and then with the receivers; then all must be as if nothing had been. */
async function recover(deployment: Deployment, { places }: Commanded): Promise<void> {
    const { timeline, weather, receivers, ledger, exporterIds } = deployment;
    const failed = (): boolean => ledger.violations.length > 0;
    const nothingOpen = (id?: string) => (): boolean => failed() || ledger.open(id).length === 0;

    timeline.note('== the deployment is well');
    weather.clear();
    for (const [, process] of deployment.running()) {
        process.dieAt(Number.POSITIVE_INFINITY, false);
        await timeline.advance(process.frozenUntil - timeline.now);
    }
    // That in the first place sends for all collectors.
    for (const place of [...places, PLACES[0]]) {
        deployment.start(place);
    }
    const noneDeadly = (id?: string) => (): boolean => {
        deployment.startExporters();
        return failed() || !ledger.open(id).some(({ accepted }) => accepted.body.includes(DEADLY));
    };
    await timeline.until(noneDeadly(exporterIds[0]), POISONED_WITHIN, 1_000);
    const patience = NEIGHBOUR_WITHIN + deployment.turnsOfOthers(exporterIds[0]) + deployment.turnsOfRate();
    if (!(await timeline.until(nothingOpen(exporterIds[0]), patience, 500))) {
        ledger.violate(`the exporter whose receiver is well is not served: ${ledger.describe(exporterIds[0])}`);
    }

    timeline.note('== the receivers are well');
    receivers.heal();
    await timeline.until(noneDeadly(), POISONED_WITHIN, 1_000);
    const allEnded = (): boolean => {
        deployment.startExporters();
        return failed() || (nothingOpen()() && deployment.isDone() && deployment.hasRoom());
    };
    if (!(await timeline.until(allEnded, RECOVERED_WITHIN + deployment.turnsOfRate(), 500))) {
        ledger.violate(`not all that was open has ended: ${ledger.describe()}`);
    }

    timeline.note('== an event of another day');
    await timeline.advance(AFTERMATH);
    await timeline.until(allEnded, RECOVERED_WITHIN, 500);
    deployment.publish();
    await timeline.advance(FRESH_WITHIN + deployment.turnsOfRate(EXPORTERS));
    if (!nothingOpen()()) {
        ledger.violate(`an event takes longer than ${FRESH_WITHIN} ms when all is well: ${ledger.describe()}`);
    }
    if (!failed()) {
        await deployment.audit();
    }
}

function resultOf(seed: number, { timeline, ledger }: Deployment, story: string): Result {
    return { seed, story, violations: ledger.violations, trace: timeline.tail(), digest: timeline.digest() };
}
