import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { type AttemptPace, attemptPace, type Ended } from '../../../../lib/webhooks/sending/attempt-pace.ts';
import { holdTime, pass } from '../../../support/passing-time.ts';

const EXPORTER = 'one';
const OTHER = 'another';

/** How many of so many attempts that are wanted together have begun, at first and after each of so many milliseconds. */
async function begun(pace: AttemptPace, count: number, milliseconds: number, exporterId = EXPORTER): Promise<readonly number[]> {
    let began = 0;
    for (let attempt = 0; attempt < count; attempt += 1) {
        const may = pace.whenMayBegin({ exporterId, singleAttempt: false });
        if (may === null) {
            began += 1;
        } else {
            void may.then(() => {
                began += 1;
            });
        }
    }

    const counts = [began];
    for (let passed = 0; passed < milliseconds; passed += 1) {
        pass(1);
        await Promise.resolve();
        counts.push(began);
    }
    return counts;
}

function timeStandsStill(t: Test): void {
    holdTime();
    t.teardown(() => mock.reset());
}

function paceAfter(...ended: readonly Partial<Ended>[]): AttemptPace {
    const pace = attemptPace();
    for (const attempt of ended) {
        pace.ended(EXPORTER, { code: 'delivered', took: 1, ...attempt });
    }
    return pace;
}

t.test('lets all begin at once for an exporter that has not been tried, and for one whose receiver is quick', async (t) => {
    timeStandsStill(t);
    t.same(await begun(attemptPace(), 200, 0), [200]);
    t.same(await begun(paceAfter({ took: 99 }), 200, 0), [200]);
});

t.test('spreads those of a slow receiver over half of its time, and holds up nobody else', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ took: 900 });
    const counts = await begun(pace, 200, 470);
    t.equal(counts[0], 8);
    t.equal(counts.at(-1), 200);
    const together = counts.slice(1).map((count, index) => count - (counts[index] as number));
    t.equal(Math.max(...together), 5);
    t.same(await begun(pace, 20, 0, OTHER), [20]);
});

t.test('spreads those of a very slow receiver over half a second', async (t) => {
    timeStandsStill(t);
    const counts = await begun(paceAfter({ took: 15_000 }), 200, 510);
    t.equal(counts.at(-1), 200);
    t.ok((counts[250] as number) < 120, `${counts[250]} in the first half`);
});

t.test('lets a full window begin within half of 200 ms', async (t) => {
    timeStandsStill(t);
    t.equal((await begun(paceAfter({ took: 200 }), 500, 110)).at(-1), 500);
});

t.test('lets nobody begin before those that wait', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ took: 900 });
    // The second turn has begun, and has let fewer begin than may begin together.
    t.equal((await begun(pace, 200, 12)).at(-1), 13);
    t.same(await begun(pace, 1, 3), [0, 0, 0, 0]);
});

t.test('lets the first ones begin at once again when nobody has waited', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ took: 900 });
    await begun(pace, 100, 1_000);
    t.same(await begun(pace, 9, 0), [8]);
});

t.test('spreads no more once the receiver has become quick', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ took: 150 }, ...Array.from({ length: 5 }, () => ({ took: 1 })));
    t.same(await begun(pace, 200, 0), [200]);
});

t.test('lets 8 begin every 5 ms for all exporters together that have failed', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ code: 'server_error' });
    pace.ended(OTHER, { code: 'connect_refused', took: 1 });
    const counts = await begun(pace, 12, 0);
    t.same(counts, [8]);
    const others = await begun(pace, 12, 10, OTHER);
    t.same([others[0], others[5], others[10]], [0, 4, 12]);
});

t.test(
    'spreads those of all very slow exporters together, failing ones too, so that an event for many of them begins no crowd',
    async (t) => {
        timeStandsStill(t);
        const pace = paceAfter({ took: 8_000 });
        pace.ended(OTHER, { code: 'timeout', took: 1_000 });
        pace.ended('less slow', { code: 'delivered', took: 900 });
        t.same(await begun(pace, 8, 0), [8]);
        const others = await begun(pace, 192, 510, OTHER);
        t.equal(others[0], 0);
        t.ok((others[250] as number) < 120, `${others[250]} in the first half`);
        t.equal(others.at(-1), 192);
        t.same(await begun(pace, 8, 0, 'less slow'), [8]);
    },
);

t.test('learns nothing from what the process itself is to blame for', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ code: 'interrupted', took: 60_000 }, { code: 'invalid_message', took: 60_000 });
    t.same(await begun(pace, 200, 0), [200]);
});

t.test('never lets a test wait', async (t) => {
    timeStandsStill(t);
    const pace = paceAfter({ code: 'server_error', took: 900 });
    await begun(pace, 100, 0);
    t.equal(pace.whenMayBegin({ exporterId: EXPORTER, singleAttempt: true }), null);
});
