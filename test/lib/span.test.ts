import t from 'tap';
import { spanOf, spanText } from '../../lib/span.ts';

t.test('reads lengths of time in words, and says them in the same words', async (t) => {
    for (const [text, ms] of [
        ['5s', 5_000],
        ['90s', 90_000],
        ['30m', 1_800_000],
        ['5h', 18_000_000],
        ['7d', 604_800_000],
    ] as const) {
        t.equal(spanOf(text), ms, text);
        t.equal(spanText(ms), text);
    }
    t.equal(spanOf('60s'), 60_000);
    t.equal(spanText(60_000), '1m', 'in the largest unit');
    t.equal(spanText(1_500), '1.5s');
});

t.test('takes nothing else for a length of time', async (t) => {
    for (const text of ['', '0', '0s', '5', 's', '5 s', '1.5s', '-5s', '5ms', '05s', '5s ', '5s,5m', '123456s']) {
        t.equal(spanOf(text), null, JSON.stringify(text));
    }
});
