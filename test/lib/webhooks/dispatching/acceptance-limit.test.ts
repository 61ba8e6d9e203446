import t from 'tap';
import { acceptanceLimit } from '../../../../lib/webhooks/dispatching/acceptance-limit.ts';

const OPTIONS = { window: 9, breakerAfter: 3, beginWithin: 10 };

/** A limit, and acceptances that end when they are told to. */
function limited() {
    const seen = { wakes: 0, options: [] as unknown[], ends: [] as ((leaves: boolean) => void)[], fails: [] as ((error: Error) => void)[] };
    const limit = acceptanceLimit({
        handOutOptions: () => OPTIONS,
        wake: () => {
            seen.wakes += 1;
        },
    });
    const begin = () =>
        limit.run(
            (handOut) => {
                seen.options.push(handOut);
                return new Promise<boolean>((resolve, reject) => {
                    seen.ends.push(resolve);
                    seen.fails.push(reject);
                });
            },
            (leaves) => leaves,
        );
    return { ...seen, seen, begin };
}

t.test('lets two acceptances hand out at once, and those beyond them store what they accept', async (t) => {
    const { options, ends, begin } = limited();
    const begun = [begin(), begin(), begin()];
    t.strictSame(options, [OPTIONS, OPTIONS, undefined]);
    ends[1]?.(false);
    await begun[1];
    begun.push(begin(), begin());
    t.strictSame(options.slice(3), [OPTIONS, undefined]);
});

t.test('wakes dispatch for what is left once fewer hand out, whatever becomes of them', async (t) => {
    const { seen, ends, fails, begin } = limited();
    const [first, second, third] = [begin(), begin(), begin()] as const;
    ends[2]?.(true);
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
    ends[0]?.(false);
    await last;
    t.equal(seen.wakes, 2, 'nothing is left');
});
