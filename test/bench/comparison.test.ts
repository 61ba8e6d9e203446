import t from 'tap';
import { compared, medianInterval, summaryOf, tablesOf } from '../../bench/comparison.ts';
import type { Measured } from '../../bench/section.ts';

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

t.test('gives the order statistics between which the median lies with at least 90 %', (t) => {
    t.equal(medianInterval(upTo(4)), null, 'all four may be on one side by chance');
    t.strictSame(medianInterval(upTo(5)), { low: 1, high: 5 });
    t.strictSame(medianInterval(upTo(9).reverse()), { low: 2, high: 8 });
    t.strictSame(medianInterval(upTo(13)), { low: 4, high: 10 });
    t.strictSame(medianInterval(upTo(20)), { low: 6, high: 15 });
    t.end();
});

t.test('calls a figure worse only where the interval of the ratio lies wholly beyond 1', (t) => {
    const verdictOf = (ours: readonly number[], moreIsBetter: boolean) => {
        const measured: Measured = {
            title: '',
            figures: { x: { label: '', moreIsBetter } },
            scanwire: ours.map((x) => ({ x })),
            beside: { name: '', runs: ours.map(() => ({ x: 100 })) },
        };
        return compared(measured, 'x')?.verdict;
    };
    const dearer = [90, 101, 102, 103, 104, 105, 106, 107, 108];
    t.equal(verdictOf(dearer, false), 'worse');
    t.equal(verdictOf(dearer, true), 'better');
    t.equal(verdictOf(dearer.with(1, 100), false), 'same');
    t.equal(verdictOf(dearer.slice(1, 5), false), 'same', 'too few rounds to tell');
    t.equal(
        verdictOf(
            upTo(9).map((x) => 90 + x),
            false,
        ),
        'better',
    );
    t.end();
});

t.test('says of each figure whether it keeps 0.97 of what the other checkout has, however sure that is', (t) => {
    const measuredOf = (ours: Readonly<Record<string, number>>, rounds: number): Measured => ({
        title: 'here',
        figures: { speed: { label: 'events/s', moreIsBetter: true }, time: { label: '  latency' } },
        scanwire: Array.from({ length: rounds }, () => ours),
        beside: { name: 'other', runs: Array.from({ length: rounds }, () => ({ speed: 100, time: 100 })) },
    });
    const keeps = (speed: number, time: number) => {
        const measured = measuredOf({ speed, time }, 1);
        return [compared(measured, 'speed')?.keeps, compared(measured, 'time')?.keeps];
    };
    t.strictSame(keeps(97, 103), [true, true], 'of a time, what it is the inverse of');
    t.strictSame(keeps(96.9, 103.1), [false, false]);
    t.strictSame(keeps(200, 50), [true, true]);

    const [, , head, speed, time] = tablesOf([measuredOf({ speed: 98, time: 110 }, 9)], true)
        .split('\n')
        .map((line) => line.split('│').map((cell) => cell.trim()));
    t.strictSame(head?.slice(-3), ['verdict', '≥ 0.97', '']);
    t.strictSame(speed?.slice(-3), ['worse', 'yes', '']);
    t.strictSame(time?.slice(-3), ['worse', 'no', '']);
    t.match(
        summaryOf([measuredOf({ speed: 98, time: 110 }, 9)]),
        /\n1 of 2 keep 0\.97 of what the other has, and these do not:\n {2}here: latency: 1\.10$/,
    );
    t.match(
        summaryOf([measuredOf({ speed: 98, time: 98 }, 1)]),
        /\n2 of 2 keep 0\.97 of what the other has$/,
        'a single round is told of too',
    );
    t.end();
});

t.test('compares nothing that one of the two has not measured', (t) => {
    const figures = { x: { label: '' } };
    t.equal(compared({ title: '', figures, scanwire: [{ x: 1 }] }, 'x'), null);
    t.equal(compared({ title: '', figures, scanwire: [{ x: 1 }], beside: { name: '', runs: [{}] } }, 'x'), null);
    t.equal(compared({ title: '', figures, scanwire: [{ x: 0 }], beside: { name: '', runs: [{ x: 0 }] } }, 'x')?.ratio, 1);
    t.end();
});

t.test('shows medians with what they lie between, and the bar of a figure', (t) => {
    const measured: Measured = {
        title: 'here',
        figures: { x: { label: 'latency', digits: 1, bar: '≤ 1.4 ×' }, y: { label: 'CPU' } },
        scanwire: [
            { x: 3, y: 1_000 },
            { x: 1, y: 1_200 },
            { x: 2, y: 1_100 },
        ],
        beside: { name: 'floor', runs: [{ x: 2 }, { x: 1 }, { x: 1 }] },
    };
    const rows = (text: string): string[][] => text.split('\n').map((line) => line.split('│').map((cell) => cell.trim()));
    const [, , head, x, y] = rows(tablesOf([measured], false));
    t.strictSame(head, ['', '', 'scanwire', 'floor', 'ratio', '90 % interval', 'bar', '']);
    t.strictSame(x, ['', 'latency', '2.0 (1.0 to 3.0)', '1.0 (1.0 to 2.0)', '1.50', '', '≤ 1.4 ×', '']);
    t.strictSame(y, ['', 'CPU', '1,100 (1,000 to 1,200)', '', '', '', '', '']);

    const once = { ...measured, figures: { y: { label: 'CPU' } }, scanwire: [{ y: 1_000 }] };
    const [, , withoutBar, single] = rows(tablesOf([once], true));
    t.strictSame(withoutBar, ['', '', 'scanwire', 'floor', 'ratio', '90 % interval', 'verdict', '≥ 0.97', '']);
    t.strictSame(single, ['', 'CPU', '1,000', '', '', '', '', '', '']);
    t.end();
});
