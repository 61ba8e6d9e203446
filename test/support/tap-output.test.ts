import t from 'tap';
import { skippedTest, skipsOf, tapTotals } from './tap-output.ts';

t.test('names what was skipped, and lets nothing be that is not on the list', (t) => {
    t.equal(
        skippedTest('    ok 3 - is taken by Event-Driven Ansible # SKIP EDA_CHECKOUT names no checkout'),
        'is taken by Event-Driven Ansible',
    );
    t.equal(skippedTest('ok 1 - build/test/x.test.js # time=3ms'), null);
    t.equal(skippedTest('not ok 1 - fails # time=3ms'), null);
    const reasons = { known: 'needs a checkout' };
    t.strictSame(skipsOf(new Set(), reasons), { lines: [], allowed: true });
    t.strictSame(skipsOf(new Set(['known']), reasons), { lines: ['ok - known: needs a checkout'], allowed: true });
    t.strictSame(skipsOf(new Set(['known', 'constructor']), reasons), {
        lines: ['ok - known: needs a checkout', 'not ok - constructor: not in test/allowed-skips.json'],
        allowed: false,
    });
    const program = { works: 'without root or apt, unless curl is installed', known: 'needs a checkout' };
    const both = new Set(Object.keys(program));
    t.match(skipsOf(both, program), { lines: [`ok - works: ${program.works}`, 'ok - known: needs a checkout'], allowed: true });
    t.match(skipsOf(both, program, { installs: true }), {
        lines: [`not ok - works: ${program.works}; here are both`, 'ok - known: needs a checkout'],
        allowed: false,
    });
    t.end();
});

t.test('reads how many assertions passed and failed', (t) => {
    t.strictSame(tapTotals('# { total: 12, pass: 10, fail: 2 }'), { passed: 10, failed: 2 });
    t.equal(tapTotals('# time=3ms'), null);
    t.end();
});
