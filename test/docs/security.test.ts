import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';

t.test('SECURITY.md names every attack that is tested, and no other', (t) => {
    const files = readdirSync('test/attack').flatMap((name) => (name.endsWith('.test.ts') ? name.replace('.test.ts', '') : []));
    const shown = readFileSync('SECURITY.md', 'utf8').matchAll(/Shown by ([^.]+)\./g);
    const named = Array.from(shown, ([, list = '']) => Array.from(list.matchAll(/`([^`]+)`/g), ([, name]) => name)).flat();
    t.strictSame([...new Set(named)].sort(), files.sort());
    t.end();
});
