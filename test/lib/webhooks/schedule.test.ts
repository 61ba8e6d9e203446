import t from 'tap';
import type { Retryability } from '../../../lib/webhooks/outcome-code.ts';
import { DEFAULT_SCHEDULE, nextStep } from '../../../lib/webhooks/schedule.ts';

const now = new Date('2026-11-21T00:00:00Z');
const after = (
    kind: Retryability,
    round: number,
    { retryAfter = null as number | null, random = 0.5, single = false } = {},
): string | number => {
    const step = nextStep({ kind, retryAfter, round, single, schedule: DEFAULT_SCHEDULE, now, random: () => random });
    return step.state === 'pending' ? step.dueAt.getTime() - now.getTime() : step.state;
};

t.test('walks through the schedule and ends exhausted', async (t) => {
    const delays = Array.from({ length: 10 }, (_, index) => after('retry', index + 1));
    t.strictSame(delays, [5e3, 300e3, 1800e3, 7200e3, 18000e3, 36000e3, 50400e3, 72000e3, 86400e3, 'exhausted']);
    t.equal(after('success', 1), 'delivered');
});

t.test('spreads each delay by a fifth to either side', async (t) => {
    t.equal(after('retry', 1, { random: 0 }), 4000);
    t.equal(after('retry', 1, { random: 1 }), 6000);
});

t.test('takes Retry-After as a floor, for a day at most', async (t) => {
    t.equal(after('retry', 1, { retryAfter: 60_000 }), 60_000);
    t.equal(after('retry', 2, { retryAfter: 60_000 }), 300_000);
    t.equal(after('retry', 1, { retryAfter: 1e12 }), 86_400_000);
});

t.test('gives a refused message fewer tries, and a single or hopeless one none', async (t) => {
    t.equal(after('short', 4), 7200e3);
    t.equal(after('short', 5), 'exhausted');
    t.equal(after('gone', 1), 'exhausted');
    t.equal(after('permanent', 1), 'exhausted');
    t.equal(after('retry', 1, { single: true }), 'exhausted');
    t.equal(after('success', 1, { single: true }), 'delivered');
});
