import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { WebhookStores, WebhooksOptions } from '../../../../lib/webhooks/options.ts';
import { type ResponseStore, responseBody } from '../../../../lib/webhooks/outcomes/response-bodies.ts';
import type { RefusedResponse } from '../../../../lib/webhooks/sending/http-exchange.ts';
import { httpSender } from '../../../../lib/webhooks/sending/http-sender.ts';
import { type Behaviour, receiver } from '../../../support/bad-receiver.ts';
import { investigation } from '../../../support/investigation.ts';
import { recordingProcess } from '../../../support/recording-process.ts';

const KIND = 'idr_investigation_created';
const guard = egressGuard({ allow: ['127.0.0.0/8'] });

function answer(status: string, body: string | Buffer, more = ''): Behaviour {
    const head = Buffer.from(`HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}\r\n`);
    return answersBytes(Buffer.concat([head, Buffer.from(body)]));
}

function answersBytes(bytes: Buffer): Behaviour {
    return async (socket, request) => {
        for (;;) {
            await request();
            socket.write(bytes);
        }
    };
}

/** What the sender tells of the answer of a receiver, in the order in which it does. */
async function told(t: Test, behaviour: Behaviour, options: { readonly maxResponseBytes?: number } = {}) {
    const target = await receiver(behaviour);
    const sender = httpSender({ guard, ...options });
    t.teardown(async () => {
        await target.close();
        await sender.close();
    });
    const refused: RefusedResponse[] = [];
    const message = { exporterId: 'e', url: `http://127.0.0.1:${target.port}/`, trust: 'strict', headers: [['X-A', 'b']] } as const;
    const outcome = await sender.send({ ...message, body: Buffer.from('{}'), onRefused: (response) => refused.push(response) });
    return { refused, outcome };
}

t.test('a sender tells of answers that are no 2xx, and of the headers that it has sent', async (t) => {
    for (const status of ['200 OK', '202 Accepted', '299 Fine']) {
        t.same((await told(t, answer(status, 'thank you'))).refused, [], status);
    }
    for (const status of ['302 Found', '401 Unauthorized', '422 No', '503 Later']) {
        t.match((await told(t, answer(status, 'no, "thank" you'))).refused, [
            { body: Buffer.from('no, "thank" you'), bytes: 15, encoded: false, cut: false, sent: [['X-A', 'b']] },
        ]);
    }
    t.match((await told(t, answer('401 No', ''))).refused, [{ bytes: 0, cut: false }]);
    t.same((await told(t, (socket) => void socket.destroy())).refused, [], 'nothing was answered');
});

t.test('a sender keeps the beginning of a long or a broken body, and inflates none', async (t) => {
    const long = 'x'.repeat(30_000);
    const whole = await told(t, answer('500 No', long));
    t.match(whole.refused, [{ bytes: 30_000, cut: true, body: Buffer.alloc(4096, 'x') }]);
    t.match(whole.outcome, { code: 'server_error', detail: 'Answered 500' });
    const limited = await told(t, answer('500 No', long), { maxResponseBytes: 10 });
    t.match(limited.refused, [{ bytes: 10, cut: true, body: Buffer.alloc(10, 'x') }]);
    t.match(limited.outcome, { detail: 'Answered 500; its body was cut off after 10 bytes' });
    const broken = await told(t, async (socket, request) => {
        await request();
        socket.end('HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf of ');
    });
    t.match(broken.refused, [{ bytes: 8, cut: true }]);
    const zipped = gzipSync('no');
    t.match((await told(t, answer('500 No', zipped, 'Content-Encoding: gzip\r\n'))).refused, [{ body: zipped, encoded: true }]);
    t.match((await told(t, answer('500 No', 'no', 'Content-Encoding: Identity\r\n'))).refused, [{ encoded: false }]);
});

function bodyOf(body: string | Buffer, more: Partial<RefusedResponse> = {}) {
    const bytes = Buffer.from(body);
    return responseBody({ body: bytes, bytes: bytes.length, encoded: false, cut: false, sent: [], ...more }, []);
}

t.test('a body is shown as text that neither a terminal nor a page acts upon', (t) => {
    t.equal(bodyOf(''), null);
    t.same(bodyOf('{"é":"🦉"}\r\n\tno\n'), { text: '{"é":"🦉"}\n    no\n', bytes: 19, truncated: false });
    t.equal(
        bodyOf('a page with \u001b[31mred\u0000 and \u202eturned text, long enough')?.text,
        'a page with \uFFFD[31mred\uFFFD and \uFFFDturned text, long enough',
    );
    t.equal(bodyOf(Buffer.from('nicht schön, gar nicht', 'latin1'))?.text, 'nicht sch\uFFFDn, gar nicht');
    t.end();
});

t.test('a body that is no text is said to be none', (t) => {
    const picture = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108', 'hex');
    t.same(bodyOf(picture), { text: null, bytes: 25, truncated: false });
    t.same(bodyOf(Buffer.from('no, thank you', 'utf16le')), { text: null, bytes: 26, truncated: false });
    t.same(bodyOf(gzipSync('no')), { text: null, bytes: gzipSync('no').length, truncated: false });
    t.same(bodyOf('{}', { encoded: true, cut: true }), { text: null, bytes: 2, truncated: true });
    t.end();
});

t.test('a body is cut off at 1,024 bytes, and no character in two', (t) => {
    for (let before = 0; before < 4; before += 1) {
        const { text = '', truncated } = bodyOf(`${'-'.repeat(before)}${'🦉'.repeat(500)}`) ?? {};
        t.match(text, /^-*(?:🦉)+$/u);
        t.ok(Buffer.byteLength(text ?? '') > 1020 && Buffer.byteLength(text ?? '') <= 1024);
        t.equal(truncated, true);
    }
    t.same(bodyOf(Buffer.from('an owl: 🦉').subarray(0, -1), { cut: true }), { text: 'an owl: ', bytes: 11, truncated: true });
    t.match(bodyOf('-'.repeat(1024)), { truncated: false });
    t.end();
});

/** What is left of a delivery to a receiver that answers so. */
async function delivered(t: Test, behaviour: Behaviour, stores: WebhookStores, options: Partial<WebhooksOptions> = {}) {
    const target = await receiver(behaviour);
    const sender = httpSender({ guard });
    t.teardown(async () => {
        await target.close();
        await sender.close();
    });
    const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, Math.min(milliseconds, 25)));
    const { exporters, deliveries, publish, start, work, errors } = recordingProcess(t, stores, { guard, sender, sleep, ...options });
    await start();
    await work(['default']);
    const { exporter } = await exporters.create({ url: `http://127.0.0.1:${target.port}/` });
    const { test } = await exporters.start(exporter.id);
    const [id = ''] = (await publish(KIND, investigation)).deliveries;
    await until(async () => (await deliveries.show(id)).lastCode !== null);
    return { test, shown: await deliveries.show(id), errors };
}

/** Stores whose responses are other ones. */
function storesWith(change: (honest: ResponseStore) => ResponseStore | undefined): WebhookStores & { readonly deliveries: DeliveryStore } {
    const stores = memoryWebhooks();
    const { responses, ...others } = stores.deliveries;
    const changed = change(responses as ResponseStore);
    return { ...stores, deliveries: { ...others, ...(changed && { responses: changed }) } };
}

/** Stores that count what they are asked to keep. */
function counting() {
    const calls: number[] = [];
    const stores = storesWith((honest) => ({
        of: honest.of,
        async keep(responses) {
            calls.push(responses.length);
            await honest.keep(responses);
        },
    }));
    return { stores, calls };
}

t.test('shows with an attempt in vain, and a test, what the receiver answered', async (t) => {
    const { test, shown, errors } = await delivered(t, answer('422 No', '{"error":"title is too long"}'), memoryWebhooks());
    const responseBody = { text: '{"error":"title is too long"}', bytes: 29, truncated: false };
    t.match(shown.history, [{ number: 1, outcome: { code: 'client_error', detail: 'Answered 422' }, responseBody }]);
    t.match(test.attempt, { outcome: { status: 422 }, responseBody });
    t.same(errors, []);
});

t.test('keeps nothing of a 2xx, and asks the store for nothing', async (t) => {
    const { stores, calls } = counting();
    const { shown } = await delivered(t, answer('200 OK', 'thank you'), stores);
    t.match(shown.history, [{ outcome: { code: 'delivered' }, responseBody: null }]);
    t.same(calls, []);
});

t.test('keeps nothing where it is not wanted, nor of an answer that says nothing', async (t) => {
    const { stores, calls } = counting();
    const { shown } = await delivered(t, answer('401 No', 'no'), stores, { keepResponses: false });
    t.match(shown.history, [{ outcome: { code: 'client_error' }, responseBody: null }]);
    t.match((await stores.settings.read()).settings, { keepResponses: false });
    const silent = counting();
    await delivered(t, answer('401 No', ''), silent.stores);
    t.same([...calls, ...silent.calls], []);
    t.equal('keepResponses' in ((await silent.stores.settings.read()).settings ?? {}), false, 'by default nothing is said of it');
});

t.test('works with a store that keeps none', async (t) => {
    const { shown, errors } = await delivered(
        t,
        answer('401 No', 'no'),
        storesWith(() => undefined),
    );
    t.match(shown.history, [{ outcome: { code: 'client_error' }, responseBody: null }]);
    t.same(errors, []);
});

t.test('records the outcome of an attempt whose response cannot be kept', async (t) => {
    const failing = storesWith(({ of }) => ({ of, keep: async () => Promise.reject(new Error('no room')) }));
    const { shown, errors } = await delivered(t, answer('401 No', 'no'), failing);
    t.match(shown.history, [{ outcome: { code: 'client_error' }, responseBody: null }]);
    t.match(errors, [{ message: 'no room' }, { message: 'no room' }]);
    const silent = storesWith(({ of }) => ({ of, keep: () => new Promise(() => {}) }));
    const waited = await delivered(t, answer('401 No', 'no'), silent);
    t.match(waited.shown.history, [{ outcome: { code: 'client_error' }, responseBody: null }]);
    t.match(waited.errors[0], { message: 'No result within 500 ms' });
});

t.test('a process that keeps other responses than its deployment does not send', async (t) => {
    for (const keepResponses of [true, false]) {
        const stores = memoryWebhooks();
        await recordingProcess(t, stores, { keepResponses }).start();
        const worker = recordingProcess(t, stores, { keepResponses: !keepResponses, role: 'worker' });
        await t.rejects(worker.work(['default']), { code: 'MISCONFIGURED', field: 'keepResponses' });
        await t.resolves(recordingProcess(t, stores, { keepResponses, role: 'worker' }).work(['default']));
    }
});
