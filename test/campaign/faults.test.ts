import t from 'tap';
import { faultPlan } from './faults.ts';

const MINUTE = 60_000;
const plan = (seed: number, minutes: number, patience = 30_000) =>
    faultPlan({ seed, duration: minutes * MINUTE, patience, processes: ['host-1', 'host-2', 'worker-3', 'worker-4'] });

t.test('a seed has the same faults each time, another has others', (t) => {
    t.strictSame(plan(7, 10), plan(7, 10));
    t.strictNotSame(plan(7, 10), plan(8, 10));
    t.end();
});

t.test('ten minutes have at least a hundred faults, of every kind', (t) => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
        const faults = plan(seed, 10, 120_000);
        t.ok(faults.length >= 100, `${faults.length} faults of seed ${seed}`);
        t.equal(new Set(faults.map(({ kind }) => kind)).size, 31);
    }
    t.end();
});

t.test('nothing fails on a target that is failing already', (t) => {
    const busyUntil = new Map<string, number>();
    for (const { target, at, duration } of plan(3, 10)) {
        t.ok(at > (busyUntil.get(target) ?? 0), `${target} at ${at}`);
        busyUntil.set(target, at + duration);
    }
    t.end();
});

t.test('a short campaign has no fault that it could not outlast', (t) => {
    for (const { kind, at, duration } of plan(5, 1)) {
        t.ok(at + duration < 90_000 - 20_000, `${kind} at ${at}`);
    }
    t.end();
});
