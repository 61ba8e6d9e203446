import Hapi from '@hapi/hapi';
import t from 'tap';
import { plugin } from '../../plugins/https-record-schema/index.ts';

/* 64 MiB of short junk lines once came to an answer of 149 MB, which took 846 MB of memory and 13 s to write. */

const KINDS: Readonly<Record<string, Buffer>> = {
    'not JSON': Buffer.from('x'.repeat(41)),
    'not UTF-8': Buffer.alloc(41, 0xff),
    'a repeated key': Buffer.from('{"data":"","host":"a","ip":"::","port":1,"port":1}'),
    'too long': Buffer.alloc(1001, 'x'),
};

t.test('an answer describes no more bad lines than it may, whatever is wrong with them', async (t) => {
    const server = Hapi.server();
    await server.register({ plugin, options: { maxLineBytes: 1000 } });
    for (const [kind, line] of Object.entries(KINDS)) {
        const payload = Buffer.alloc(1500 * (line.length + 1), Buffer.concat([line, Buffer.from('\n')]));
        const { result } = await server.inject({
            method: 'POST',
            url: '/https-record-schema/check',
            headers: { 'content-type': 'application/x-ndjson' },
            payload,
        });
        const { lines, bad, unreported } = result as {
            readonly lines: readonly unknown[];
            readonly bad: number;
            readonly unreported: number;
        };
        t.same([lines.length, bad, unreported], [1000, 1500, 500], kind);
    }
});
