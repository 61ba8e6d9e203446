import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { json, said, usedDataOf } from '../support/served.ts';

// Starts of servers take their time on a busy machine.
t.setTimeout(240_000);

t.test('fills a folder that is there, as a volume is, and leaves nothing else where it lies', async (t) => {
    const data = await usedDataOf(t);
    const folder = dirname(data);
    const file = join(folder, 'backup');
    await json(data, 'backup', file);
    const volume = join(folder, 'volume');
    mkdirSync(volume);
    chmodSync(volume, 0o755);
    const { ino } = statSync(volume);

    truncateSync(file, statSync(file).size - 1000);
    t.match(await said(['restore', file, '--data', volume]), { code: 1, stderr: /no whole backup/ });
    t.strictSame(readdirSync(volume), []);
    rmSync(file);
    await json(data, 'backup', file);
    t.match(await said(['restore', file, '--data', volume]), { code: 0 });
    t.match(statSync(volume), { ino, mode: 0o40700 }, 'what is mounted cannot be renamed');
    t.strictSame(readdirSync(volume), ['database', 'key-ring.json', 'license']);
    t.strictSame(readdirSync(folder).sort(), ['backup', 'data', 'volume']);
    t.match(await json(volume, 'keys', 'create', 'first'), { name: 'first' });
});

t.test('takes no folder that a restore was cut off in for a whole one', async (t) => {
    const data = await usedDataOf(t);
    const file = join(dirname(data), 'backup');
    await json(data, 'backup', file);
    mkdirSync(join(data, 'restoring'));
    for (const words of [
        ['serve', '--port', '0'],
        ['keys', 'list'],
        ['keys', 'create', 'first'],
        ['restore', file],
    ]) {
        const { code, stderr } = await said([...words, '--data', data]);
        t.match([code, stderr], [1, /holds half of a backup, .*: where none does, empty the folder and restore anew/], words.join(' '));
    }
});
