import t from 'tap';
import { campaign } from './campaign.ts';

t.test('loses nothing in a minute of faults, and sends nothing twice without a cause', async (t) => {
    t.setTimeout(240_000);
    const { verdict, failures } = await campaign({ seed: 7, minutes: 1, events: 1500 });
    t.strictSame(failures, []);
    t.comment(verdict);
});

t.test('ends when it is called off', async (t) => {
    const lines: string[] = [];
    const controller = new AbortController();
    const onProgress = (line: string): void => {
        lines.push(line);
        controller.abort();
    };
    await t.rejects(campaign({ seed: 1, minutes: 1, events: 100, signal: controller.signal, onProgress }), { name: 'AbortError' });
    t.match(lines, [/^2\.0 s: process stands still, worker-3/]);
});
