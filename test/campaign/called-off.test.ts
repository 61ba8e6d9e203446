import t from 'tap';
import { campaign } from './campaign.ts';

// Apart from the campaign that goes on to its end, which takes nearly as long as a file may.
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
