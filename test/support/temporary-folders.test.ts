import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { folderInMemory } from './temporary-folders.ts';

t.test('makes a folder in memory that goes with its link, and with it what killed runs have left', (t) => {
    const first = folderInMemory();
    if (first === undefined) {
        t.pass('this machine has no room in memory, or runs no programs there');
        t.end();
        return;
    }

    t.equal(statSync(first.path).mode & 0o777, 0o711, 'others enter what is in it');
    t.ok(realpathSync(first.link).startsWith(join(first.path, '')));
    const { pid } = spawnSync('true');
    const left = join(first.path, '..', `scanwire-${pid}-left`);
    mkdirSync(join(left, 'full'), { recursive: true });
    t.teardown(() => rmSync(left, { recursive: true, force: true }));
    const second = folderInMemory();
    t.notOk(existsSync(left));
    t.ok(existsSync(first.path), 'that of a run that goes on stays');

    first.remove();
    t.notOk(existsSync(first.path));
    t.notOk(readdirSync('.tap').some((name) => first.link.endsWith(name)));
    second?.remove();
    t.end();
});
