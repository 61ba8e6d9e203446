import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';

const compiled = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));

/** How far the clocks move when that of the machine is set by an offset in milliseconds. */
async function movedBy(t: Test, offset: number) {
    const folder = t.testdir();
    const set = { CLOCK_FILE: join(folder, 'set'), CLOCK_OFFSET: String(offset), DATABASE_FOLDER: join(folder, 'data') };
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', compiled('settable-clock'), compiled('clock-child')], {
        env: { ...process.env, ...set },
    });
    type Moved = Record<'anchoredAt' | 'unseen' | 'database' | 'process', number> & { warnings: string[] };
    return JSON.parse(stdout) as Moved;
}

t.test('goes on from where it was at the opening when the clock of the machine is set back', async (t) => {
    const moved = await movedBy(t, -3_600_000);
    t.ok(moved.process < -3_000_000, 'the clock was set back');
    t.ok(moved.database >= 0 && moved.database < 60_000, `${moved.database} ms passed`);
    t.ok(Math.abs(moved.anchoredAt) < 10_000, 'it began as the machine had it');
    t.strictSame(moved.warnings, []);
});

t.test('goes forward to the clock of the machine within a minute, as after a suspend, and says so', async (t) => {
    const moved = await movedBy(t, 3_600_000);
    t.ok(moved.unseen < 60_000, `${moved.unseen} ms passed before it was looked at`);
    t.ok(moved.database >= 3_600_000 && moved.database < 3_700_000, `${moved.database} ms passed`);
    t.match(moved.warnings, [/went 3600 s forward to that of the machine/]);
});
