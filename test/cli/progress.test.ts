import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { fixture } from '../support/served.ts';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));
const FILE = fixture('records/servers.jsonl');
const BAR = /% .* left/;
const HIDES = /\[\?(?:25|7)l/;

/** What a person sees who runs the command at a terminal. */
function atTerminal(command: string): string {
    const ran = spawnSync('script', ['-qec', `'${process.execPath}' '${ENTRY}' ${command}`, '/dev/null'], { encoding: 'utf8', input: '' });
    return ran.stdout;
}

const skip = process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0 ? 'needs script of util-linux' : false;

t.test('shows a bar that leaves nothing to put back, however the command ends', { skip }, async (t) => {
    const seen = atTerminal(`records check '${FILE}'`);
    t.match(seen, BAR);
    t.notMatch(seen, HIDES);
    t.match(seen, /42 good, 0 bad\r\n/);
});

t.test('shows how far an import is while it stores and shows what was read', { skip }, async (t) => {
    const folder = t.testdir({
        'scan.jsonl': Array.from({ length: 1000 }, (_, index) => `{"address":"10.0.${index >> 8}.${index & 255}"}\n`).join(''),
    });
    const command = `import '${folder}/scan.jsonl' --data '${folder}/data'`;
    const seen = atTerminal(command);
    t.match(seen, /reading .*storing .*100% .*hosts 1000 new/s);
    t.match(seen, /reading .*% {2}[\d.]+ MB\/s {2}.* left.*storing .*100% {2}[\d,]+ hosts\/s {2}.* left/s, 'how fast, and for how long');
    const again = atTerminal(command);
    t.match(again, /storing .*100% .*hosts 1000 unchanged/s);
    t.notMatch(again, /showing|LLs/, 'where nothing has changed there is nothing to show');
});

t.test('shows none among lines that go to the terminal', { skip }, async (t) => {
    const seen = atTerminal(`records read '${FILE}'`);
    t.notMatch(seen, BAR);
    t.match(seen, /^200 {2}https:\/\/web\.example\.test:8443\/ /);
    t.notMatch(atTerminal('records capture 127.0.0.1:9 2>&1').split('TARGET')[0], /captured/);
    t.equal(atTerminal(`records write '${FILE}' 2>/dev/null`).replaceAll('\r', ''), readFileSync(FILE, 'utf8'));
});

t.test('shows one while lines go elsewhere', { skip }, async (t) => {
    const folder = t.testdir({});
    t.match(atTerminal(`records write '${FILE}' --output '${folder}/out.jsonl'`), BAR);
    t.match(atTerminal(`records read '${FILE}' > '${folder}/lines'`), BAR);
});
