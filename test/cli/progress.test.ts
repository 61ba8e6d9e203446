import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
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

/** One percentage over all phases. */
function onlyGoesOn(t: Test, seen: string): void {
    const told = [...seen.matchAll(/(\d+)%/g)].map(([, percentage]) => Number(percentage));
    t.strictSame(
        told,
        told.toSorted((one, other) => one - other),
    );
}

t.test('shows how far an import is while it stores and shows what was read', { skip: withoutTerminal }, async (t) => {
    const folder = t.testdir({
        'scan.jsonl': Array.from({ length: 1000 }, (_, index) => `{"address":"10.0.${index >> 8}.${index & 255}"}\n`).join(''),
    });
    const command = `import '${folder}/scan.jsonl' --data '${folder}/data'`;
    const seen = await atTerminal(command);
    t.match(
        seen,
        /reading .*% {2}[\d.]+ MB\/s {2}.* left.*storing .*9\d% {2}[\d,]+ hosts\/s {2}.* left.*hosts 1000 new/s,
        'how fast, and for how long',
    );
    onlyGoesOn(t, seen);
    const again = await atTerminal(command);
    t.match(again, /storing .*9\d% .*hosts 1000 unchanged/s);
    t.notMatch(again, /showing|LLs/, 'where nothing has changed there is nothing to show');
    onlyGoesOn(t, again);
    const dry = await atTerminal(`${command} --replace --dry-run`);
    t.match(dry, /storing .*comparing .*% {2}[\d,]+ hosts\/s {2}.* left.*undoing .*9\d% {2}[\d,]+ hosts\/s {2}.* left.*1000 unchanged/s);
    onlyGoesOn(t, dry);
});

t.test('says of what comes through a pipe that nobody knows how much it is, until it has come', { skip: withoutTerminal }, async (t) => {
    const folder = t.testdir({ 'scan.jsonl': '{"address":"10.0.0.1"}\n'.repeat(1000) });
    const seen = await atTerminal(`import <(cat '${folder}/scan.jsonl') --data '${folder}/data'`, { SHELL: '/bin/bash' });
    t.match(seen, /reading [\d.]+ MB of an unknown size.*storing .*9\d%.*hosts 1 new/s);
    t.notMatch(seen, /reading [^[]*%/);
    onlyGoesOn(t, seen);
    t.match(await atTerminal(`records check <(cat '${FILE}')`, { SHELL: '/bin/bash' }), /reading [\d.]+ MB of an unknown size/);
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
