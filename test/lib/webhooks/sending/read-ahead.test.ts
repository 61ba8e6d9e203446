import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { underWay } from '../../../../adapters/contract/assertions.ts';
import type { Claim, ClaimRequest, HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { byteBudget } from '../../../../lib/webhooks/sending/byte-budget.ts';
import { messageCache } from '../../../../lib/webhooks/sending/message-cache.ts';
import { readingAhead } from '../../../../lib/webhooks/sending/read-ahead.ts';

const LIMIT = 1_000;

type Read = { readonly ids: readonly string[]; readonly maxBytes: number | undefined };

/** What reads ahead in a process that works for the collector `own`, from a store that answers so. */
function reader(t: Test, answer: () => Promise<readonly (Claim | null)[]> = async () => []) {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const reads: Read[] = [];
    const bodyMemory = byteBudget({ limit: LIMIT, largest: 10 });
    type Context = Parameters<typeof readingAhead>[0];
    const readAhead = readingAhead({
        deliveries: {
            async claim(requests: readonly ClaimRequest[], _: string | null, maxBytes?: number) {
                reads.push({ ids: requests.map(({ deliveryId }) => deliveryId), maxBytes });
                return await answer();
            },
        } as Partial<Context['deliveries']> as Context['deliveries'],
        traces: { keep: async () => undefined, withTraceparents: async (claims) => claims },
        session: { id: 'session', offers: (collector?: string) => collector === 'own' } as Partial<
            Context['session']
        > as Context['session'],
        messageCache: messageCache(bodyMemory),
        bodyMemory,
        claimDuration: 30_000,
        onError: (error) => t.fail(error.message),
    });
    return { readAhead, reads, bodyMemory };
}

function handedOut(deliveryId: string, collector = 'own'): HandedOut {
    const reservation = { token: `of ${deliveryId}`, beginBy: 0, generation: 1, attemptSinceReplay: 2, settings: 0 };
    return { deliveryId, exporterId: 'siem', collector, attempt: 2, singleAttempt: false, reservation };
}

const TWO = [handedOut('one'), handedOut('two')];

t.test('reads what its process sends, and leaves what others send', async (t) => {
    const { readAhead, reads } = reader(t);
    await readAhead([handedOut('theirs', 'other'), ...TWO]);
    await readAhead([handedOut('theirs', 'other'), handedOut('also theirs', 'other')]);
    t.strictSame(
        reads.map(({ ids }) => ids),
        [['one', 'two']],
    );
});

t.test('reads no more than there is memory for, and nothing where there is none', async (t) => {
    const { readAhead, reads, bodyMemory } = reader(t);
    bodyMemory.take('siem', 200);
    await readAhead(TWO);
    t.strictSame(
        reads.map(({ maxBytes }) => maxBytes),
        [LIMIT / 2 - 200],
    );
    bodyMemory.take('siem', 300);
    await readAhead(TWO);
    t.equal(reads.length, 1);
});

t.test('holds nobody up for longer than a moment where the store says nothing, and asks it no more until it does', async (t) => {
    let say = (): void => undefined;
    const { readAhead, reads } = reader(t, async () => {
        await new Promise<void>((resolve) => {
            say = resolve;
        });
        return [];
    });
    const first = underWay(readAhead(TWO));
    mock.timers.tick(149);
    await new Promise(setImmediate);
    t.notOk(first.ended());
    mock.timers.tick(1);
    await first.result;
    await readAhead(TWO);
    t.equal(reads.length, 1);
    say();
    await new Promise(setImmediate);
    void readAhead(TWO);
    t.equal(reads.length, 2);
});
