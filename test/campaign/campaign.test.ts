import t from 'tap';
import { campaign } from './campaign.ts';

t.test('loses nothing in a minute of faults, and sends nothing twice without a cause', async (t) => {
    t.setTimeout(240_000);
    const { verdict, failures } = await campaign({ seed: 7, minutes: 1, events: 1500 });
    t.strictSame(failures, []);
    t.comment(verdict);
});
