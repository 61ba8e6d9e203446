import t from 'tap';
import { ownCheckout } from '../../bench/checkout.ts';
import { formats } from '../../bench/formats.ts';
import { lists } from '../../bench/lists.ts';
import { shareOf } from '../../bench/retention.ts';
import { measure } from '../../bench/section.ts';

for (const section of [formats, lists]) {
    t.test(`${section.name} measures all that it shows, and so does its peer`, async (t) => {
        const [measured] = await measure(section, { own: await ownCheckout(), rounds: 1, scale: 0.01 });
        const names = Object.keys(measured?.figures ?? {});
        t.ok(names.length > 10);
        for (const figures of [measured?.scanwire[0], measured?.beside?.runs[0]]) {
            t.strictSame(Object.keys(figures ?? {}).toSorted(), names.toSorted());
            t.ok(Object.values(figures ?? {}).every((value) => Number.isFinite(value) && value >= 0));
        }
    });
}

t.test('retention counts the vacuum of what it removes as its own time', (t) => {
    t.equal(shareOf({ statements: 100, expiring: 4, vacuum: 0 }), 4);
    t.equal(shareOf({ statements: 80, expiring: 10, vacuum: 20 }), 30);
    t.end();
});
