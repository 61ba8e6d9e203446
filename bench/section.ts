import type { Checkout } from './checkout.ts';

/** What one run has measured, by name. */
export type Figures = Readonly<Record<string, number>>;

export type Run = () => Promise<Figures>;

/** How a figure is shown and judged. */
export interface Figure {
    readonly label: string;
    readonly digits?: number;
    /** For a speed; of everything else less is better. */
    readonly moreIsBetter?: boolean;
    /** What is wanted, as it is shown: of the figure, or with a × of the ratio. */
    readonly bar?: string;
}

/** The figures, with bars for some. */
export function withBars(
    figures: Readonly<Record<string, Figure>>,
    bars: Readonly<Record<string, string>>,
): Readonly<Record<string, Figure>> {
    return Object.fromEntries(
        Object.entries(figures).map(([name, figure]) => [name, bars[name] === undefined ? figure : { ...figure, bar: bars[name] }]),
    );
}

/** Something that scanwire does, and what else does it. */
export interface Measurement {
    readonly title: string;
    readonly figures: Readonly<Record<string, Figure>>;
    /** Starts what the runs of the package of a checkout need. */
    scanwire(checkout: Checkout): Promise<Run>;
    /** Called after `scanwire`, unless another checkout is measured in place of the peers. */
    peers?(): Promise<readonly Peer[]>;
}

export interface Peer {
    readonly name: string;
    /** Peers that share a run are measured once. */
    readonly run: Run;
    /** Makes of what a run has measured what is compared; nothing by default. */
    readonly as?: (figures: Figures) => Figures;
}

/** What all the runs of a section share. */
export interface OpenSection {
    readonly measurements: readonly Measurement[];
    /** Ends what was started. */
    close?(): Promise<void>;
}

export interface Setting {
    /** The checkout that is measured, and that the peers are of. */
    readonly own: Checkout;
    /** Measured in place of the peers. */
    readonly other?: Checkout;
    readonly rounds: number;
    /** Multiplies what is counted: 1 for figures to quote, less to see that all works. */
    readonly scale: number;
}

export interface Section {
    readonly name: string;
    /** First rounds that do not count; none for runs that warm up by themselves. */
    readonly discarded: number;
    /** Two at the same time on one core instead of in turn. */
    readonly oneCore?: boolean;
    readonly mostRounds?: number;
    /** Takes so long that it is measured only when it is named. */
    readonly onRequest?: boolean;
    open(setting: Setting): Promise<OpenSection>;
}

/** What was measured, one entry for each counted round. */
export interface Measured {
    readonly title: string;
    readonly figures: Measurement['figures'];
    readonly scanwire: readonly Figures[];
    /** The peer, or the other checkout. */
    readonly beside?: { readonly name: string; readonly runs: readonly Figures[] };
}

interface Pair extends Pick<Measurement, 'title' | 'figures'> {
    readonly scanwire: Run;
    readonly beside?: Peer;
}

/** What is made once for each checkout, for several measurements. */
export interface OfEach<Made> {
    of(checkout: Checkout): Promise<Made>;
    /** What was made. */
    all(): Promise<readonly Made[]>;
}

export function ofEach<Made>(make: (checkout: Checkout) => Promise<Made>): OfEach<Made> {
    const made = new Map<Checkout, Promise<Made>>();
    return {
        of(checkout) {
            const known = made.get(checkout) ?? make(checkout);
            made.set(checkout, known);
            return known;
        },

        all: () => Promise.all(made.values()),
    };
}

export async function measure(section: Section, setting: Setting): Promise<readonly Measured[]> {
    const { measurements, close } = await section.open(setting);
    try {
        const pairs = (await Promise.all(measurements.map((measurement) => pairsOf(measurement, setting)))).flat();
        const count = Math.min(setting.rounds, section.mostRounds ?? setting.rounds);
        return await (section.oneCore ? pairByPair : inTurn)(pairs, count, section.discarded);
    } finally {
        await close?.();
    }
}

async function pairsOf({ title, figures, scanwire, peers }: Measurement, { own, other }: Setting): Promise<readonly Pair[]> {
    const pair = { title, figures, scanwire: await scanwire(own) };
    const others = other === undefined ? ((await peers?.()) ?? []) : [{ name: other.name, run: await scanwire(other) }];
    return others.length === 0 ? [pair] : others.map((beside) => ({ ...pair, beside }));
}

async function inTurn(pairs: readonly Pair[], count: number, discarded: number): Promise<readonly Measured[]> {
    const runs = [...new Set(pairs.flatMap(({ scanwire, beside }) => [scanwire, ...(beside === undefined ? [] : [beside.run])]))];
    const measured = await interleaved(runs, count, discarded);
    const of = (run: Run): readonly Figures[] => measured[runs.indexOf(run)] as readonly Figures[];
    return pairs.map(({ scanwire, beside, ...rest }) => ({
        ...rest,
        scanwire: of(scanwire),
        ...(beside && { beside: { name: beside.name, runs: comparedOf(beside, of(beside.run)) } }),
    }));
}

function comparedOf({ as = (figures) => figures }: Peer, runs: readonly Figures[]): readonly Figures[] {
    return runs.map(as);
}

async function pairByPair(pairs: readonly Pair[], count: number, discarded: number): Promise<readonly Measured[]> {
    const measured: Measured[] = [];
    for (const { scanwire, beside, ...rest } of pairs) {
        if (beside === undefined) {
            const [runs = []] = await interleaved([scanwire], count, discarded);
            measured.push({ ...rest, scanwire: runs });
        } else {
            const [ours = [], theirs = []] = await together([scanwire, beside.run], count, discarded);
            measured.push({ ...rest, scanwire: ours, beside: { name: beside.name, runs: comparedOf(beside, theirs) } });
        }
    }

    return measured;
}

/**
 * Runs in turn, A B, then B A, so that a machine that is slow for a minute is slow for all, and no run is always the one after
 * another. Gives for each what its rounds have measured, without the first rounds, which `discarded` counts.
 */
async function interleaved(runs: readonly Run[], count: number, discarded: number): Promise<readonly (readonly Figures[])[]> {
    const measured = runs.map((): Figures[] => []);
    for (let round = 0; round < discarded + count; round += 1) {
        const order = [...runs.keys()];
        for (const index of round % 2 === 0 ? order : order.reverse()) {
            measured[index]?.push(await (runs[index] as Run)());
        }
    }

    return measured.map((figures) => figures.slice(discarded));
}

/**
 * Runs two at the same time on the one core that both are kept to, for figures of CPU time. The clock of a small machine changes
 * from second to second, by a quarter and more: in turn, each run meets another one; like this, both meet the same.
 */
async function together(pair: readonly [Run, Run], count: number, discarded: number): Promise<readonly (readonly Figures[])[]> {
    const measured: readonly [Figures[], Figures[]] = [[], []];
    for (let round = 0; round < discarded + count; round += 1) {
        const [first, second] = await bothAtOnce(pair);
        measured[0].push(first);
        measured[1].push(second);
    }

    return measured.map((figures) => figures.slice(discarded));
}

/** The one that is ready first goes on with runs that do not count, so that the other has company to its end. */
async function bothAtOnce(pair: readonly [Run, Run]): Promise<readonly [Figures, Figures]> {
    let running = 2;
    const withCompany = async (run: Run): Promise<Figures> => {
        const figures = await run();
        running -= 1;
        while (running > 0) {
            await run();
        }

        return figures;
    };
    return Promise.all([withCompany(pair[0]), withCompany(pair[1])]);
}
