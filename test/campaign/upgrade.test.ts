import { fileURLToPath } from 'node:url';
import t from 'tap';
import { campaign } from './campaign.ts';

/** This checkout, in place of an earlier version, of which a clone without a network has none. */
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));

t.test('replaces the processes of a compiled checkout one after the other, loses nothing and sends nothing twice', async (t) => {
    const lines: string[] = [];
    const onProgress = (line: string): void => void lines.push(line);
    const { verdict, failures } = await campaign({ seed: 7, minutes: 1 / 3, events: 300, upgradeFrom: CHECKOUT, onProgress });
    t.strictSame(failures, []);
    t.comment(verdict);
    t.equal(lines.filter((line) => line.includes('process replaced')).length, 4, lines.join('; '));
});
