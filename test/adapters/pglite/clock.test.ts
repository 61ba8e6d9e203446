import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const compiled = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));

t.test('goes on from where it was at the opening when the clock of the machine is set back', async (t) => {
    const env = { ...process.env, CLOCK_FILE: join(t.testdir(), 'set-back') };
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', compiled('settable-clock'), compiled('clock-child')], {
        env,
    });
    const moved = JSON.parse(stdout) as { anchoredAt: number; database: number; process: number };
    t.ok(moved.process < -3_000_000, 'the clock was set back');
    t.ok(moved.database >= 0 && moved.database < 60_000, `${moved.database} ms passed`);
    t.ok(Math.abs(moved.anchoredAt) < 10_000, 'it began as the machine had it');
});
