import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { said } from '../support/served.ts';

/** Clears the screen, sets the title of the window, turns the direction round, and ends a line where none ends. */
const HOSTILE = '\u001b[2J\u009d0;owned\u0007\u202etxt.exe\u2066\u2028\u007f';
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not come out
const RAW = /[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

async function post(url: string, body: string): Promise<void> {
    const outgoing = request(url, { method: 'POST', agent: false });
    outgoing.end(body);
    const [incoming] = await once(outgoing, 'response');
    incoming.resume();
}

for (const more of [[], ['--json']]) {
    t.test(`shows what a stranger sends, and no sign that a terminal acts on ${more.join('')}`, async (t) => {
        const listening = startScanwire(['listen', '--port', '0', '--secret-env', 'HOOK_SECRET', ...more], { env: { HOOK_SECRET: 'x' } });
        t.teardown(() => listening.kill('SIGKILL'));
        const lines = linesOf(listening);
        const first = more.length === 0 ? String((await lines.next()).value) : String((await nextJson(listening, lines)).listening);
        const url = first.replace('Listening on ', '');
        await post(url, JSON.stringify({ title: HOSTILE }));
        await post(url, HOSTILE);

        let shown = '';
        while (shown.split('txt.exe').length < 3) {
            shown += `${(await lines.next()).value}\n`;
        }

        t.notMatch(shown, RAW);
        if (more.length > 0) {
            const [object, plain] = shown
                .trim()
                .split('\n')
                .map((line) => JSON.parse(line) as { body: string });
            t.equal(plain?.body, HOSTILE, 'escaped, and no less there');
            t.strictSame(JSON.parse(object?.body ?? ''), { title: HOSTILE });
        }
    });

    t.test(`says what is wrong with hostile arguments without passing them on ${more.join('')}`, async (t) => {
        const folder = t.testdir();
        for (const args of [
            [HOSTILE],
            ['keys', HOSTILE],
            ['keys', 'list', '--data', join(folder, HOSTILE)],
            ['records', 'check', join(folder, HOSTILE)],
            ['exporters', 'create', '--url', 'https://example.com/', '--secret-env', HOSTILE],
            ['serve', '--port', HOSTILE],
        ]) {
            const { code, stdout, stderr } = await said([...args, ...more], { cwd: folder });
            t.not(code, 0);
            t.notMatch(`${stdout}${stderr}`, RAW, encodeURI(args.join(' ')));
            t.match(stderr, 'txt.exe');
        }
    });
}
