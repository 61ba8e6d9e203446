import t from 'tap';
import { replayCache } from '../../../lib/verify/index.ts';

const at = (second: number): Date => new Date(second * 1000);
const OLDEST = at(0);

t.test('knows what came, by id and time', async (t) => {
    const cache = replayCache();
    t.equal(cache.isNew('a', at(10), OLDEST), true);
    t.equal(cache.isNew('a', at(10), OLDEST), false);
    t.equal(cache.isNew('a', at(11), OLDEST), true);
    t.equal(cache.isNew('b', at(10), OLDEST), true);
    t.equal(cache.isNew('a', at(9), OLDEST), true);
    t.equal(cache.isNew('a', at(9), OLDEST), false);
});

t.test('forgets what is refused by its time, and lets it in no more, whatever the clock does', async (t) => {
    const cache = replayCache({ max: 2 });
    cache.isNew('a', at(10), OLDEST);
    cache.isNew('b', at(20), OLDEST);
    t.equal(cache.isNew('c', at(30), at(15)), true, 'what was forgotten takes no room');
    t.equal(cache.isNew('b', at(20), at(20)), false, 'the oldest that is not refused by its time is still known');
    t.equal(cache.isNew('a', at(10), OLDEST), false);
    t.equal(cache.isNew('x', at(11), OLDEST), true, 'a clock that was wrong for a moment shuts out nothing that is newer than what came');
});

t.test('lets no replay in when there are too many, and keeps at most so many', async (t) => {
    const max = 100;
    const cache = replayCache({ max });
    const came: [string, number][] = [];
    let admitted = 0;
    for (let index = 0; index < 1_000; index += 1) {
        // Not in the order of their times.
        const second = 1_000 + ((index * 7) % 300);
        if (cache.isNew(`m${index}`, at(second), OLDEST)) {
            admitted += 1;
            came.push([`m${index}`, second]);
        }
    }

    t.ok(admitted >= max, `${admitted} were let in`);
    t.strictSame(
        came.filter(([id, second]) => cache.isNew(id, at(second), OLDEST)),
        [],
    );
    t.equal(cache.isNew('later', at(2_000), OLDEST), true, 'what is newer than all of them gets in');
});

t.test('keeps to its limit within a single second too', async (t) => {
    const cache = replayCache({ max: 3 });
    const news = Array.from({ length: 10 }, (_, index) => cache.isNew(`m${index}`, at(5), OLDEST));
    t.strictSame(news, [true, true, true, true, ...Array(6).fill(false)]);
    t.strictSame(Array.from({ length: 10 }, (_, index) => cache.isNew(`m${index}`, at(5), OLDEST)).filter(Boolean), []);
    t.equal(cache.isNew('next', at(6), OLDEST), true);
});

t.test('forgets the oldest second of very many, whatever their order and their gaps', async (t) => {
    const max = 130_000;
    const cache = replayCache({ max });
    // In pairs, the later one first, and none in every third second.
    const seconds = Array.from({ length: max + 10_000 }, (_, index) => 3 * (index >> 1) + (1 - (index % 2)));
    t.strictSame(
        seconds.filter((second) => !cache.isNew('m', at(second), OLDEST)),
        [],
    );
    t.strictSame(
        seconds.filter((second) => cache.isNew('m', at(second), OLDEST)),
        [],
    );
    const oldest = 3 * 5_000;
    t.equal(cache.isNew('another', at(oldest - 2), OLDEST), false, 'is forgotten');
    t.equal(cache.isNew('another', at(oldest), OLDEST), true, 'is not');
});

t.test('is at an end where there is no time', async (t) => {
    const cache = replayCache({ max: 1 });
    t.equal(cache.isNew('a', at(Number.NaN), OLDEST), false);
    const news = [1, 2, 3].map((second) => cache.isNew('a', at(second), at(Number.NaN)));
    t.strictSame(news, [true, true, true]);
    t.equal(cache.isNew('a', at(1), OLDEST), false);
});

t.test('refuses a limit that is none', async (t) => {
    for (const max of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        t.throws(() => replayCache({ max }), { code: 'MISCONFIGURED', field: 'max' });
    }
});
