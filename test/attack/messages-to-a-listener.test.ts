import { once } from 'node:events';
import { request } from 'node:http';
import t, { type Test } from 'tap';
import { linesOf, nextJson, startScanwire } from '../support/scanwire.ts';

/*
 * A stranger sends to `scanwire listen` what makes its terminal useless.
 */

/** A listener, and what it prints after what it says first. */
async function listener(t: Test, ...more: string[]) {
    const listening = startScanwire(['listen', '--port', '0', '--secret-env', 'HOOK_SECRET', ...more], { env: { HOOK_SECRET: 'x' } });
    t.teardown(() => listening.kill('SIGKILL'));
    const lines = linesOf(listening);
    const first = more.length === 0 ? String((await lines.next()).value) : String((await nextJson(listening, lines)).listening);
    return { url: first.replace('Listening on ', ''), lines };
}

const TOO_LONG = /The body is longer than 4 MiB, and was not read/;

/** Sends a message, whatever becomes of it. */
async function post(url: string, body: string): Promise<void> {
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'x-vendor-event': 'test' } });
    outgoing.on('error', () => {});
    outgoing.end(body);
    await once(outgoing, 'close');
}

t.test('prints a nested body that is not verified, and no more than a few times its length', async (t) => {
    const { url, lines } = await listener(t);
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    const bodies = [
        nested(3_000),
        `[${Array(500).fill(nested(20)).join()}]`,
        JSON.stringify({ text: '[,'.repeat(500), deep: { a: [1, 2] } }),
    ];
    for (const body of bodies) {
        await post(url, body);
    }

    await post(url, '"the end"');
    let shown = '';
    while (!shown.includes('the end')) {
        shown += `${(await lines.next()).value}\n`;
        if (shown.length > 1_000_000) {
            break;
        }
    }

    const length = bodies.join('').length;
    t.ok(shown.length < 10 * length, `${shown.length} characters are printed of ${length}`);
    t.match(shown, `\n${bodies[0]}\n`, 'as it came');
    t.match(
        shown,
        '\n    "deep": {\n        "a": [\n            1,\n            2\n        ]\n    }\n}',
        'what is not nested deeply is indented',
    );
});

for (const more of [[], ['--json']]) {
    t.test(`prints a line for a message that is too long, without its body ${more.join('')}`, async (t) => {
        const { url, lines } = await listener(t, ...more);
        await post(url, '1'.repeat(4 * 1024 * 1024 + 1));
        await post(url, '"the end"');
        let shown = '';
        while (!shown.includes('the end')) {
            shown += `${(await lines.next()).value}\n`;
        }

        t.ok(shown.length < 1_000);
        const [first = ''] = shown.trim().split('\n');
        if (more.length > 0) {
            t.match(JSON.parse(first), { receivedAt: String, event: 'test', verified: false, forms: [], reason: TOO_LONG, body: null });
        } else {
            t.match(first, /^2\S+Z {2}test {2}NOT verified: /);
            t.match(first, TOO_LONG);
        }
    });
}
