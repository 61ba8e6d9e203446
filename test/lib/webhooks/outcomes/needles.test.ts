import t from 'tap';
import { lookFor, type Reached } from '../../../../lib/webhooks/outcomes/needles.ts';
import { seeded } from '../../../support/seeded.ts';

/** The lengths of what a chain leads through. */
function lengths(first: Reached | null, next: (reached: Reached) => Reached | null): readonly number[] {
    return first === null ? [] : [first.length, ...lengths(next(first), next)];
}

t.test('finds, at each index of a text, the needles that end there and those that have begun', (t) => {
    const random = seeded(1);
    const word = (max: number): string =>
        Array.from({ length: 1 + Math.floor(random() * max) }, () => 'ab€'[Math.floor(random() * 3)]).join('');
    const counts = { whole: 0, begun: 0 };
    for (let round = 0; round < 300; round += 1) {
        const needles = Array.from({ length: Math.floor(random() * 8) }, () => word(6));
        const text = word(30);
        const { start, next } = lookFor(needles);
        let reached = start;
        for (let end = 1; end <= text.length; end += 1) {
            reached = next(reached, text.charCodeAt(end - 1));
            const ends = Array.from({ length: end }, (_, at) => text.slice(at, end));
            const whole = ends.filter((part) => needles.includes(part)).map((part) => part.length);
            const begun = ends.filter((part) => needles.some((needle) => needle.startsWith(part)));
            t.same(
                lengths(reached.needle, ({ shorter }) => shorter?.needle ?? null),
                whole,
            );
            t.same(
                lengths(reached, ({ shorter }) => shorter),
                [...begun.map((part) => part.length), 0],
            );
            const [longest = ''] = begun;
            const wholes = needles.filter((needle) => longest !== '' && needle.startsWith(longest)).map((needle) => needle.length);
            t.equal(reached.length === 0 ? 0 : reached.longest, Math.max(0, ...wholes));
            counts.whole += whole.length;
            counts.begun += begun.length;
        }
    }
    t.ok(counts.whole > 1000 && counts.begun > 3000, JSON.stringify(counts));
    t.end();
});
