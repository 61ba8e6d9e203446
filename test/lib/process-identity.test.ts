import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { isAlive, ownBoot, ownIdentity } from '../../lib/process-identity.ts';

t.test('a process is alive until it ends', async (t) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)'], { stdio: 'ignore' });
    const identity = { pid: child.pid ?? 0, started: '' };
    t.ok(isAlive(identity));
    child.kill('SIGKILL');
    await once(child, 'close');
    t.notOk(isAlive(identity));
});

t.test('a process is told from an earlier one with its pid by its start', (t) => {
    const own = ownIdentity();
    t.equal(own.pid, process.pid);
    t.ok(isAlive(own));
    t.ok(isAlive({ ...own, started: '' }));
    t.notOk(isAlive({ ...own, started: 'another boot/1' }));
    t.end();
});

t.test('a process is told by ps where there is no /proc', (t) => {
    const own = ownIdentity('/nowhere');
    t.match(own.started, /^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$/);
    t.ok(isAlive(own, '/nowhere'));
    t.notOk(isAlive({ ...own, started: 'Thu Jan  1 00:00:00 1970' }, '/nowhere'));
    t.end();
});

t.test('all processes between two starts of the machine tell the same of it', { skip: process.platform !== 'linux' }, (t) => {
    t.match(ownBoot(), /^[0-9a-f-]{36}$/);
    t.ok(ownIdentity().started.startsWith(`${ownBoot()}/`));
    t.equal(ownBoot('/nowhere'), '', 'where nothing tells it');
    t.end();
});
