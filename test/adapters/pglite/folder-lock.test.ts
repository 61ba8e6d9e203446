import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { lockFolder } from '../../../adapters/pglite/folder-lock.ts';
import { ownBoot } from '../../../lib/process-identity.ts';

/** A process of this boot that ended long ago, whose pid a later one may have. */
const EARLIER = `${ownBoot()}/1`;

const fileIn = (folder: string): string => join(folder, 'database.lock');

t.test('holds a folder until it is given back', async (t) => {
    const folder = t.testdir();
    const unlock = await lockFolder(folder);
    await t.rejects(lockFolder(folder), {
        code: 'MISCONFIGURED',
        message: `The embedded database in ${folder} is in use by process ${process.pid}; only one process at a time can open it`,
    });
    unlock();
    (await lockFolder(folder))();
});

t.test('yields to the death of the process that holds it, and not before', async (t) => {
    const folder = t.testdir();
    const holder = holdElsewhere(folder);
    t.equal(await outputOf(holder), 'held\n');
    await t.rejects(lockFolder(folder), { code: 'MISCONFIGURED', message: new RegExp(`in use by process ${holder.pid};`) });

    holder.kill('SIGKILL');
    await once(holder, 'close');
    (await lockFolder(folder))();
});

t.test('yields when the pid of its holder belongs to a later process', async (t) => {
    const folder = t.testdir();
    writeFileSync(fileIn(folder), JSON.stringify({ pid: process.pid, started: EARLIER }));
    (await lockFolder(folder))();
});

t.test('holds on while the process that holds it stands still, and leaves nothing of it behind', async (t) => {
    const folder = t.testdir();
    const holder = holdElsewhere(folder);
    await outputOf(holder);
    holder.kill('SIGSTOP');
    await t.rejects(lockFolder(folder), { code: 'MISCONFIGURED', message: /is in use by process/ });
    holder.kill('SIGKILL');
    await once(holder, 'close');
    (await lockFolder(folder))();
    t.same(readdirSync(folder), []);
});

t.test('asks the socket, not the process ids: those of another container mean nothing here', async (t) => {
    const folder = t.testdir();
    const holder = holdElsewhere(folder);
    await outputOf(holder);
    const lock = JSON.parse(readFileSync(fileIn(folder), 'utf8'));
    // As the first process of a container tells it, seen from outside.
    writeFileSync(fileIn(folder), JSON.stringify({ ...lock, pid: 2 ** 22 + 1, started: '' }));
    await t.rejects(lockFolder(folder), { code: 'MISCONFIGURED', message: /is in use by process/ });

    holder.kill('SIGKILL');
    await once(holder, 'close');
    writeFileSync(fileIn(folder), JSON.stringify({ ...lock, pid: process.pid, started: '' }));
    (await lockFolder(folder))();
});

t.test('refuses the lock of another machine or boot, and names the command that removes it', async (t) => {
    const folder = t.testdir();
    for (const lock of [
        { pid: 12, started: 'x/1', boot: 'another boot', host: 'elsewhere', socket: 'database.lock.01234567' },
        { pid: 12, started: 'another boot/1' },
    ]) {
        writeFileSync(fileIn(folder), JSON.stringify(lock));
        const { message } = (await lockFolder(folder).catch((error: unknown) => error)) as Error;
        t.match(message, /opened by process 12.*on another machine or before this one was started/);
        const [, command = ''] = /say: (rm .*)$/.exec(message) ?? [];
        execFileSync('sh', ['-c', command]);
        (await lockFolder(folder))();
    }
});

t.test('locks a folder whose path is too long for a socket', async (t) => {
    const folder = join(t.testdir(), 'x'.repeat(120));
    mkdirSync(folder);
    const holder = holdElsewhere(folder);
    t.equal(await outputOf(holder), 'held\n');
    await t.rejects(lockFolder(folder), { code: 'MISCONFIGURED', message: /is in use by process/ });
    holder.kill('SIGKILL');
    await once(holder, 'close');
    (await lockFolder(folder))();
});

t.test('takes an empty file for a lock that is being written, and after some seconds for the remains of one', async (t) => {
    const folder = t.testdir();
    writeFileSync(fileIn(folder), '');
    await t.rejects(lockFolder(folder), { code: 'MISCONFIGURED', message: /just opening it/ });

    utimesSync(fileIn(folder), 0, 0);
    (await lockFolder(folder))();
});

t.test('is not held up by somebody who died while clearing', async (t) => {
    const folder = t.testdir();
    writeFileSync(fileIn(folder), JSON.stringify({ pid: process.pid, started: EARLIER }));
    writeFileSync(`${fileIn(folder)}.clearing`, '');
    utimesSync(`${fileIn(folder)}.clearing`, 0, 0);
    (await lockFolder(folder))();
});

t.test('admits one of many who find a dead lock at the same time', async (t) => {
    const folder = t.testdir();
    writeFileSync(fileIn(folder), JSON.stringify({ pid: process.pid, started: EARLIER }));
    const rivals = Array.from({ length: 6 }, () => holdElsewhere(folder));
    const outputs = await Promise.all(rivals.map(outputOf));
    t.same(outputs.toSorted(), [...Array.from({ length: 5 }, () => 'MISCONFIGURED\n'), 'held\n']);
    t.equal(JSON.parse(readFileSync(fileIn(folder), 'utf8')).pid, rivals[outputs.indexOf('held\n')]?.pid);
    for (const rival of rivals) {
        rival.kill('SIGKILL');
    }
});

t.test('says what is wrong with a folder in which no lock can be', async (t) => {
    await t.rejects(lockFolder(join(t.testdir(), 'missing')), { code: 'ENOENT' });
    await t.rejects(lockFolder(t.testdir({ 'database.lock': {} })), { code: 'EISDIR' });
    await t.rejects(lockFolder('/proc/self'), { code: 'MISCONFIGURED', message: /^Cannot make a socket in \/proc\/self \(E[A-Z]+\)/ });
});

t.test('says that a folder has no room for the name of a lock that is being made', async (t) => {
    // The longest in which the lock itself could be.
    const names = (length: number): string => Array.from({ length: Math.ceil(length / 200) }, () => 'x'.repeat(199)).join('/');
    const root = t.testdir();
    const folder = join(root, names(4_070)).slice(0, 4_070).replace(/\/$/, 'x');
    mkdirSync(folder, { recursive: true });
    await t.rejects(lockFolder(folder), { code: 'ENAMETOOLONG' });
    t.same(readdirSync(folder), []);
});

t.test('leaves the lock of another alone when it is given back late', async (t) => {
    const folder = t.testdir();
    const unlock = await lockFolder(folder);
    writeFileSync(fileIn(folder), 'somebody else');
    unlock();
    t.equal(readFileSync(fileIn(folder), 'utf8'), 'somebody else');
});

function holdElsewhere(folder: string): ChildProcess {
    const script = fileURLToPath(new URL('./lock-child.js', import.meta.url));
    return spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function outputOf({ stdout }: ChildProcess): Promise<string> {
    const [chunk] = stdout === null ? [] : await once(stdout, 'data');
    return String(chunk);
}
