import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';

t.test('keeps what was acknowledged when its process is killed, and is open to nobody else until then', async (t) => {
    const folder = t.testdir();
    const script = fileURLToPath(new URL('./durability-child.js', import.meta.url));
    let stored = 0;

    for (const enough of [100, 400]) {
        const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
        const closed = once(child, 'close');
        let refused: Promise<unknown> | undefined;
        for await (const line of createInterface({ input: child.stdout })) {
            stored = Number(line);
            refused ??= openEmbeddedDatabase({ folder }).catch((error: unknown) => error);
            if (stored >= enough && !child.killed) {
                t.match(await refused, { code: 'MISCONFIGURED', message: new RegExp(`in use by process ${child.pid};`) });
                child.kill('SIGKILL');
            }
        }

        await closed;
        const database = await openEmbeddedDatabase({ folder });
        const { rows } = await database.query<{ count: number; last: number }>(
            'select count(*)::integer as count, max(n) as last from acknowledged',
        );
        const [{ count, last } = { count: 0, last: 0 }] = rows;
        t.ok(count >= stored, `${count} rows of ${stored} acknowledged`);
        t.equal(count, last);
        await database.end();
    }
});
