import t, { type Test } from 'tap';
import { type HowFar, type Phase, type WholeWork, wholeWork } from '../../cli/output/whole-work.ts';

/** A phase as it really is: how long it takes, in seconds, and what it tells. */
interface Real {
    readonly phase: Phase;
    readonly seconds: number;
    readonly total: number;
    readonly ahead?: Readonly<Partial<Record<'comparing' | 'showing' | 'undoing', number>>>;
    /** Told of as many as there are. */
    readonly unknown?: boolean;
}

interface Moment extends HowFar {
    readonly phase: Phase;
    readonly seconds: number;
}

const STEPS = 100;

/** All that is told of phases that follow each other, in even steps. */
function run(behind: readonly Phase[], phases: readonly Real[]): readonly Moment[] {
    let seconds = 0;
    const work: WholeWork = wholeWork(behind, () => seconds * 1000);
    return phases.flatMap(({ phase, total, unknown = false, ahead, ...real }) =>
        Array.from({ length: STEPS }, (_, step) => {
            const done = (total * (step + 1)) / STEPS;
            seconds += real.seconds / STEPS;
            return { phase, seconds, ...work.at(phase, { done, total: unknown ? null : total, ahead }) };
        }),
    );
}

/** Goes on with everything that is told, and is not far from the truth at any time but when a phase has just begun. */
function isHonest(t: Test, moments: readonly Moment[], { within }: { readonly within: number }): void {
    const shares = moments.flatMap(({ share }) => share ?? []);
    t.ok(
        shares.every((share, index) => index === 0 || share > (shares[index - 1] ?? 1)),
        'never goes back, and never stands still',
    );
    t.ok(
        shares.every((share) => share < 1),
        'and does not end before all is done',
    );
    t.ok((shares.at(-1) ?? 0) > 0.97);
    const end = moments.at(-1)?.seconds ?? 0;
    const middle = moments.find(({ seconds }) => seconds >= end / 2);
    const factor = (middle?.left ?? 0) / (end / 2);
    t.ok(factor < within && factor > 1 / within, `says ${middle?.left} s of ${end / 2} s in the middle`);
}

const READING = { phase: 'reading', total: 5_000_000 } as const;

t.test('is one work over all phases, whatever they cost', (t) => {
    const hosts = 4000;
    const replacement = ([reading = 0, storing = 0, comparing = 0, showing = 0]: readonly number[]): readonly Moment[] =>
        run(
            ['storing', 'comparing'],
            [
                { ...READING, seconds: reading },
                { phase: 'storing', seconds: storing, total: hosts, ahead: { comparing: hosts, showing: hosts } },
                { phase: 'comparing', seconds: comparing, total: hosts, ahead: { showing: hosts } },
                { phase: 'showing', seconds: showing, total: hosts },
            ],
        );
    for (const costs of [
        [10, 20, 8, 10],
        [10, 60, 8, 10],
        [25, 20, 8, 10],
        [10, 20, 20, 10],
        [10, 20, 4, 20],
    ]) {
        t.comment(costs.join(', '));
        isHonest(t, replacement(costs), { within: 2 });
    }
    t.end();
});

t.test('is not far from the imports that were measured', (t) => {
    const total = 50_000;
    for (const [name, moments] of Object.entries({
        'new hosts, embedded': run(
            ['storing'],
            [
                { ...READING, seconds: 7.4 },
                { phase: 'storing', seconds: 27.2, total, ahead: { showing: 0 } },
            ],
        ),
        'changed hosts, PostgreSQL': run(
            ['storing'],
            [
                { ...READING, seconds: 5.4 },
                { phase: 'storing', seconds: 13.1, total, ahead: { showing: total } },
                { phase: 'showing', seconds: 10.5, total },
            ],
        ),
        'a dry run of XML, embedded': run(
            ['storing', 'undoing'],
            [
                { ...READING, seconds: 27 },
                { phase: 'storing', seconds: 33, total, ahead: { undoing: 2 * total } },
                { phase: 'undoing', seconds: 14, total: 2 * total },
            ],
        ),
        'a dry run that replaces, embedded': run(
            ['storing', 'comparing', 'undoing'],
            [
                { ...READING, seconds: 9.1 },
                { phase: 'storing', seconds: 33.7, total, ahead: { comparing: total, undoing: 2 * total } },
                { phase: 'comparing', seconds: 7.4, total, ahead: { undoing: 2 * total } },
                { phase: 'undoing', seconds: 5.2, total: 2 * total },
            ],
        ),
    })) {
        t.comment(name);
        isHonest(t, moments, { within: 1.5 });
    }
    t.end();
});

t.test('corrects what is left by the pace of the phase at work', (t) => {
    const moments = run(
        ['storing'],
        [
            { phase: 'reading', seconds: 1, total: 1000 },
            { phase: 'storing', seconds: 100, total: 4000, ahead: { showing: 0 } },
        ],
    );
    const after = (seconds: number) => moments.find((moment) => moment.seconds >= seconds);
    t.ok((after(1)?.left ?? 0) < 5, 'as it must seem at first');
    for (const seconds of [12, 20, 50, 90]) {
        const { left = null } = after(seconds) ?? {};
        t.ok(Math.abs((left ?? 0) / (101 - seconds) - 1) < 0.25, `says ${left} s after ${seconds} s`);
    }
    t.equal(Math.round(after(50)?.perSecond ?? 0), 40, 'hosts a second');
    t.end();
});

t.test('goes on evenly when more or less turns out to be ahead', (t) => {
    const storing = { phase: 'storing', seconds: 25, total: 4000 } as const;
    const reading = { phase: 'reading', seconds: 10, total: 1000 } as const;
    for (const [name, moments] of Object.entries({
        more: run(['storing'], [reading, { ...storing, ahead: { showing: 40 } }, { phase: 'showing', seconds: 12, total: 4000 }]),
        less: run(['storing', 'comparing'], [reading, { ...storing, ahead: {} }]),
        unsaid: run(['storing', 'comparing'], [reading, storing, { phase: 'showing', seconds: 10, total: 4000 }]),
    })) {
        t.comment(name);
        isHonest(t, moments, { within: 2.5 });
    }
    t.end();
});

t.test('ends with the reading where nothing follows', (t) => {
    const moments = run([], [{ phase: 'reading', seconds: 10, total: 1000 }]);
    t.ok(Math.abs((moments[49]?.share ?? 0) - 0.5) < 0.01);
    t.equal(Math.round(moments[49]?.perSecond ?? 0), 100);
    t.ok(Math.abs((moments[49]?.left ?? 0) - 5) < 0.01);
    t.match(moments.at(-1), { share: 1, left: 0 });
    t.end();
});

t.test('knows no share of an input whose size is not known, and takes nothing from the pace of whoever writes it', (t) => {
    const moments = run(
        ['storing'],
        [
            { phase: 'reading', seconds: 3600, total: 1000, unknown: true },
            { phase: 'storing', seconds: 20, total: 4000, ahead: {} },
        ],
    );
    const reading = moments.filter(({ phase }) => phase === 'reading');
    t.ok(reading.every(({ share, left }) => share === null && left === null));
    t.equal(Math.round((reading.at(-1)?.perSecond ?? 0) * 3600), 1000);
    const storing = moments.filter(({ phase }) => phase === 'storing');
    t.equal(storing[0]?.left, null, 'before anything of it is measured');
    t.ok(Math.abs((storing[49]?.left ?? 0) - 10) < 1);
    t.ok((storing[0]?.share ?? 0) > 0);
    t.ok((storing.at(-1)?.share ?? 0) > 0.97);
    t.end();
});
