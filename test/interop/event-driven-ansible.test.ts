/*
 * The event source `webhook` of Event-Driven Ansible, from a checkout that `EDA_CHECKOUT` names, with python3-aiohttp. What was sent to it, and
 * how it answered, is kept: where no checkout is at hand, the same must be sent.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import type { SignatureForm } from '../../lib/webhooks/setting-values.ts';
import { freePort } from '../support/free-port.ts';
import { answers, changed, post, SECRET, type Sent, sendingExporter, TITLE } from './sending-exporter.ts';
import { holdsTranscript, keptTranscript } from './transcript.ts';

interface Exchange {
    readonly form: SignatureForm;
    /** Those that do not name this run's receiver. */
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: string;
    readonly status: number;
    readonly text: string;
}

const { EDA_CHECKOUT: checkout, PYTHON: python = 'python3' } = process.env;
const TRANSCRIPT = 'event-driven-ansible';
/** As the receiver's settings name them. */
const FORMATS = { base64: 'base64', hex: 'hex', 'sha256-hex': 'hex' } as const;
const { delivered } = await sendingExporter(t);

t.test('is taken by Event-Driven Ansible', { skip: checkout === undefined && 'EDA_CHECKOUT names no checkout' }, async (t) => {
    const exchanges: Exchange[] = [];
    for (const [form, format] of Object.entries(FORMATS) as [SignatureForm, string][]) {
        const settings = { hmac_header: 'x-vendor-signature', hmac_format: format };
        const { url, events } = await eventSource(t, { ...settings, hmac_secret: SECRET });
        const sent = await delivered(t, [form], `${url}/hook`);
        t.match(sent, { status: 200, text: 'hook' }, form);
        await until(() => events.length > 1);
        t.match(events[1], { payload: { title: TITLE }, meta: { endpoint: 'hook' } }, 'the rulebook gets the event');
        exchanges.push(exchange(form, sent));
        t.equal((await post(`${url}/hook`, sent.headers, changed(sent.body))).status, 401, `${form}, changed`);

        const { url: other, events: none } = await eventSource(t, { ...settings, hmac_secret: 'another' });
        t.equal((await delivered(t, [form], `${other}/hook`)).status, 401, `${form}, with another secret`);
        t.strictSame(none, []);
    }

    const commit = execFileSync('git', ['-C', checkout ?? '', 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
    holdsTranscript(t, TRANSCRIPT, { with: `the event source webhook of Event-Driven Ansible, ${commit}`, exchanges });
});

t.test('sends what Event-Driven Ansible has taken', async (t) => {
    const { exchanges } = keptTranscript<Exchange>(TRANSCRIPT);
    t.strictSame(
        exchanges.map(({ form, status }) => [form, status]),
        Object.keys(FORMATS).map((form) => [form, 200]),
    );
    for (const { status: _, text: __, ...kept } of exchanges) {
        const { status: ___, text: ____, ...now } = exchange(kept.form, await delivered(t, [kept.form]));
        t.strictSame(now, kept, kept.form);
    }
});

function exchange(form: SignatureForm, { headers: { host: _, ...headers }, body, status, text }: Sent): Exchange {
    return { form, headers, body: body.toString(), status, text };
}

/** The event source with these settings, and what it hands on to a rulebook. */
async function eventSource(t: Test, settings: object): Promise<{ readonly url: string; readonly events: readonly unknown[] }> {
    const driver = fileURLToPath(new URL('../../../test/interop/drivers/event_driven_ansible.py', import.meta.url));
    const port = await freePort();
    const source = spawn(python, [driver, checkout ?? '', JSON.stringify({ host: '127.0.0.1', port, ...settings })], {
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => source.kill());
    const events: unknown[] = [];
    createInterface(source.stdout).on('line', (line) => events.push(JSON.parse(line)));
    const ended = once(source, 'exit').then(([code]) => Promise.reject(new Error(`The event source has ended with ${code}`)));
    await Promise.race([until(() => answers(port)), ended]);
    ended.catch(() => {});
    return { url: `http://127.0.0.1:${port}`, events };
}
