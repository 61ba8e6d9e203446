import { readFileSync } from 'node:fs';
import t from 'tap';
import { fixture } from '../support/served.ts';
import { atTerminal, withoutTerminal } from '../support/terminal.ts';

const FILE = fixture('records/servers.jsonl');
const BAR = /% .* left/;
const HIDES = /\[\?(?:25|7)l/;

t.test('shows a bar that leaves nothing to put back, however the command ends', { skip: withoutTerminal }, async (t) => {
    const seen = await atTerminal(`records check '${FILE}'`);
    t.match(seen, BAR);
    t.notMatch(seen, HIDES);
    t.match(seen, /42 good, 0 bad\r\n/);
});

t.test('shows how far an import is while it stores and shows what was read', { skip: withoutTerminal }, async (t) => {
    const folder = t.testdir({
        'scan.jsonl': Array.from({ length: 1000 }, (_, index) => `{"address":"10.0.${index >> 8}.${index & 255}"}\n`).join(''),
    });
    const command = `import '${folder}/scan.jsonl' --data '${folder}/data'`;
    const seen = await atTerminal(command);
    t.match(seen, /reading .*storing .*100% .*hosts 1000 new/s);
    t.match(seen, /reading .*% {2}[\d.]+ MB\/s {2}.* left.*storing .*100% {2}[\d,]+ hosts\/s {2}.* left/s, 'how fast, and for how long');
    const again = await atTerminal(command);
    t.match(again, /storing .*100% .*hosts 1000 unchanged/s);
    t.notMatch(again, /showing|LLs/, 'where nothing has changed there is nothing to show');
    const dry = await atTerminal(`${command} --replace --dry-run`);
    t.match(dry, /storing .*comparing .*100% {2}[\d,]+ hosts\/s {2}.* left.*undoing .*100% {2}[\d,]+ hosts\/s {2}.* left.*1000 unchanged/s);
});

t.test('shows none among lines that go to the terminal', { skip: withoutTerminal }, async (t) => {
    const seen = await atTerminal(`records read '${FILE}'`);
    t.notMatch(seen, BAR);
    t.match(seen, /^200 {2}https:\/\/web\.example\.test:8443\/ /);
    t.notMatch((await atTerminal('records capture 127.0.0.1:9 2>&1')).split('TARGET')[0], /captured/);
    t.equal((await atTerminal(`records write '${FILE}' 2>/dev/null`)).replaceAll('\r', ''), readFileSync(FILE, 'utf8'));
});

t.test('shows one while lines go elsewhere', { skip: withoutTerminal }, async (t) => {
    const folder = t.testdir({});
    t.match(await atTerminal(`records write '${FILE}' --output '${folder}/out.jsonl'`), BAR);
    t.match(await atTerminal(`records read '${FILE}' > '${folder}/lines'`), BAR);
});
