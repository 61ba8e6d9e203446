import assert from 'node:assert/strict';
import t from 'tap';
import { type ByteBudget, type ByteBudgetOptions, byteBudget } from '../../../../lib/webhooks/sending/byte-budget.ts';
import { seeded } from '../../../support/seeded.ts';

type Make = (options: ByteBudgetOptions) => ByteBudget;

const LIMIT = 6400;
const LARGEST = 100;

/** Exporters that take whatever they may, of bodies that all are the largest, and keep it. */
function crowd(make: Make, count: number) {
    const budget = make({ limit: LIMIT, largest: LARGEST });
    const names = Array.from({ length: count }, (_, index) => `exporter-${index}`);
    const total = (): number => names.reduce((sum, name) => sum + budget.bytesOf(name), 0);

    /** As a worker does: the first body whatever it has, then as many as fit in. */
    function takeAll(name: string): void {
        for (let allowed = budget.allowance(name); allowed > 0; allowed = budget.allowance(name)) {
            assert.ok(allowed >= LARGEST, 'who may take anything may take any body');
            budget.take(name, Math.max(1, Math.floor(allowed / LARGEST)) * LARGEST);
            assert.ok(total() <= LIMIT, `${total()} are held`);
        }
    }

    return {
        budget,
        names,
        total,
        takeAll,
        fill: () => names.forEach(takeAll),
        giveBackOne(name: string): void {
            budget.giveBack(name, Math.min(LARGEST, budget.bytesOf(name)));
        },
    };
}

const LAWS: Readonly<Record<string, (make: Make) => void>> = {
    'lets one who is alone have half of it'(make) {
        const { total, fill } = crowd(make, 1);
        fill();
        assert.ok(Math.abs(total() - LIMIT / 2) <= 2 * LARGEST, `${total()}`);
    },

    'leaves as much for a newcomer as those who want all of it hold each'(make) {
        for (let count = 1; count < LIMIT / LARGEST / 4; count += 1) {
            const { budget, names, fill, takeAll, giveBackOne } = crowd(make, count);
            const random = seeded(count);
            fill();
            for (let step = 0; step < 100 * count; step += 1) {
                giveBackOne(names[Math.floor(random() * count)] as string);
                takeAll(names[Math.floor(random() * count)] as string);
            }
            fill();
            assert.ok(budget.allowance('newcomer') >= LARGEST, `beside ${count}`);
            const fair = LIMIT / (count + 1);
            for (const name of names) {
                assert.ok(
                    Math.abs(budget.bytesOf(name) - fair) <= fair / 2 + LARGEST,
                    `${budget.bytesOf(name)} of ${fair} beside ${count}`,
                );
            }
        }
    },

    'lets every one have a body in turn where there are more than fit in'(make) {
        const count = (2 * LIMIT) / LARGEST;
        const { budget, names, total, fill, giveBackOne } = crowd(make, count);
        fill();
        assert.ok(total() > LIMIT - LARGEST, 'no room is left');
        const waiting = names.filter((name) => budget.bytesOf(name) === 0);
        for (const name of waiting) {
            assert.equal(budget.allowance(name), 0);
            giveBackOne(names.find((other) => budget.bytesOf(other) > 0) as string);
            assert.ok(budget.allowance(name) >= LARGEST, 'there is room for one');
            budget.take(name, LARGEST);
        }
    },

    'lets a body that is larger than all of it pass alone'(make) {
        const budget = make({ limit: LIMIT, largest: LARGEST });
        budget.take('one', 2 * LIMIT);
        assert.equal(budget.allowance('other'), 0);
        budget.giveBack('one', 2 * LIMIT);
        assert.ok(budget.allowance('other') >= LARGEST);
        budget.take('one', 1);
        assert.ok(budget.allowance('other') >= LARGEST);
    },

    'leaves room for what may come'(make) {
        const budget = make({ limit: LIMIT, largest: LARGEST });
        assert.equal(budget.allowance('one', LIMIT / 2), LIMIT / 4);
        assert.equal(budget.allowance('one', LIMIT - LARGEST), LARGEST);
        assert.equal(budget.allowance('one', LIMIT - LARGEST + 1), 0, 'no largest body would fit');
        budget.take('one', LIMIT / 2 - 2 * LARGEST);
        assert.equal(budget.allowance('one', LIMIT / 2), 0, 'others would find less');
    },

    'counts what is taken for nobody until somebody sends it'(make) {
        const budget = make({ limit: LIMIT, largest: LARGEST });
        const kept = Array.from({ length: 2 * (LIMIT / LARGEST) }, () => budget.tryTake(LARGEST)).filter((taken) => taken).length;
        assert.equal(kept * LARGEST, LIMIT / 2, 'the other half is for who waits');
        assert.equal(budget.allowance('one'), LIMIT / 4);
        budget.assign('one', LIMIT / 2);
        assert.equal(budget.bytesOf('one'), LIMIT / 2);
        assert.deepEqual([budget.allowance('one'), budget.allowance('other')], [0, LIMIT / 4]);
        budget.giveBack('one', LIMIT / 2);
        assert.equal(budget.allowance('one'), LIMIT / 2);
    },
};

for (const [name, law] of Object.entries(LAWS)) {
    t.test(name, async (t) => {
        law(byteBudget);
        t.pass();
    });
}

/** A budget with another rule for what may be taken. */
function ruled(rule: (free: number, held: number) => number): Make {
    return (options) => {
        const budget = byteBudget(options);
        const holders = new Set<string>();
        const free = (): number => options.limit - [...holders].reduce((sum, name) => sum + budget.bytesOf(name), 0);
        return {
            ...budget,
            take(name, bytes) {
                holders.add(name);
                budget.take(name, bytes);
            },
            assign(name, bytes) {
                holders.add(name);
                budget.assign(name, bytes);
            },
            allowance: (name) => rule(free(), budget.bytesOf(name)),
        };
    };
}

const anyBody = (bytes: number): number => Math.max(bytes, LARGEST);

t.test('notices other rules', async (t) => {
    const mutants: Readonly<Record<string, Make>> = {
        'whoever comes first takes all': ruled((free) => (free < LARGEST ? 0 : free)),
        'what is free is no bound': ruled((free, held) => (held > 0 && held >= free ? 0 : anyBody((free - held) / 2))),
        'nobody holds more than one body': ruled((free, held) => (held > 0 || free < LARGEST ? 0 : LARGEST)),
        'each has a fixed part': ruled((free, held) => (free < LARGEST || held >= LIMIT / 4 ? 0 : LARGEST)),
        'what is free is taken at once': ruled((free, held) => (free < LARGEST || (held > 0 && held >= free) ? 0 : anyBody(free - held))),
        'a body that is too large waits for ever': ruled((free, held) => (free < LARGEST || held >= free / 2 ? 0 : LARGEST)),
        'what may come needs no room': (options) => {
            const budget = byteBudget(options);
            return { ...budget, allowance: (name) => budget.allowance(name) };
        },
        'what is sent stays with nobody': (options) => ({ ...byteBudget(options), assign: () => {} }),
    };
    for (const [name, mutant] of Object.entries(mutants)) {
        const broken = Object.values(LAWS).filter((law) => {
            try {
                law(mutant);
                return false;
            } catch {
                return true;
            }
        });
        t.ok(broken.length > 0, name);
    }
});

t.test('says when bytes were given back, later', async (t) => {
    const budget = byteBudget({ limit: LIMIT, largest: LARGEST });
    let freed = 0;
    budget.whenFreed(() => {
        freed += 1;
    });
    budget.take('one', 5);
    budget.giveBack('one', 5);
    t.equal(freed, 0);
    await null;
    t.equal(freed, 1);
});
