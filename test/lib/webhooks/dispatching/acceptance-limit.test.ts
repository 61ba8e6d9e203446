import t from 'tap';
import { acceptanceLimit } from '../../../../lib/webhooks/dispatching/acceptance-limit.ts';

const OPTIONS = { window: 9, breakerAfter: 3, beginWithin: 10 };

/** A limit, and acceptances that end when they are told to. */
function limited() {
    type Leaves = readonly string[] | true;
    const seen = {
        wakes: 0,
        wakesFor: [] as (readonly string[])[],
        options: [] as unknown[],
        ends: [] as ((leaves: Leaves) => void)[],
        fails: [] as ((error: Error) => void)[],
    };
    const limit = acceptanceLimit({
        handOutOptions: () => OPTIONS,
        wake: () => {
            seen.wakes += 1;
        },
        wakeFor: (exporterIds) => {
            seen.wakesFor.push(exporterIds);
        },
    });
    const begin = (options?: { readonly mayHandOut: boolean }) =>
        limit.run(
            (handOut) => {
                seen.options.push(handOut);
                return new Promise<Leaves>((resolve, reject) => {
                    seen.ends.push(resolve);
                    seen.fails.push(reject);
                });
            },
            (leaves) => leaves,
            options,
        );
    return { ...seen, seen, begin };
}

t.test('lets two acceptances hand out at once, and those beyond them store what they accept', async (t) => {
    const { options, ends, begin } = limited();
    const begun = [begin(), begin(), begin()];
    t.strictSame(options, [OPTIONS, OPTIONS, undefined]);
    ends[1]?.([]);
    await begun[1];
    begun.push(begin(), begin());
    t.strictSame(options.slice(3), [OPTIONS, undefined]);
});

t.test('lets none hand out that may not, beside which others may', async (t) => {
    const { seen, options, ends, begin } = limited();
    const waiting = [begin({ mayHandOut: false }), begin({ mayHandOut: false })];
    void begin();
    void begin();
    t.strictSame(options, [undefined, undefined, OPTIONS, OPTIONS]);
    ends[2]?.([]);
    ends[0]?.(['one']);
    await waiting[0];
    t.equal(seen.wakes, 1, 'what it leaves is looked for');
});

t.test('wakes dispatch for what is left once fewer hand out, whatever becomes of them', async (t) => {
    const { seen, ends, fails, begin } = limited();
    const [first, second, third] = [begin(), begin(), begin()] as const;
    ends[2]?.(['one']);
    await third;
    t.equal(seen.wakes, 0, 'what the two hand out would not be seen');
    fails[0]?.(new RangeError('The store is away'));
    await t.rejects(first, RangeError);
    t.equal(seen.wakes, 1);
    ends[1]?.(true);
    await second;
    t.equal(seen.wakes, 2, 'what it leaves itself is looked for at once');
    ends.length = 0;
    const last = begin();
    ends[0]?.([]);
    await last;
    t.equal(seen.wakes, 2, 'nothing is left');
    t.strictSame(seen.wakesFor, []);
});

t.test('tells dispatch for which exporters there was no room, once fewer hand out', async (t) => {
    const { seen, ends, begin } = limited();
    const [first, second] = [begin(), begin()] as const;
    ends[0]?.(['one', 'other']);
    await first;
    t.strictSame(seen.wakesFor, [['one', 'other']]);
    const third = begin();
    ends[2]?.(['one']);
    ends[1]?.(['third']);
    await Promise.all([second, third]);
    t.strictSame(new Set(seen.wakesFor.flat()), new Set(['one', 'other', 'third']));
    t.equal(seen.wakes, 0, 'of what had room nothing is left');
});
