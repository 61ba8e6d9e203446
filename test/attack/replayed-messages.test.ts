import Hapi from '@hapi/hapi';
import t, { type Test } from 'tap';
import { type ReplayCache, replayCache, type VerifyOptions, verify } from '../../lib/verify/index.ts';
import { signatureHeaders, vendorNamed } from '../../lib/webhooks/messages/signature.ts';
import { generateSecret } from '../../lib/webhooks/messages/signing-secret.ts';
import { plugin, type WebhookAuthOptions } from '../../plugins/webhook-auth/index.ts';

/*
 * Somebody who has read a message sends it again, to receivers whose clock or memory of what came does not work as it should.
 */

const SECRET = generateSecret();
const BODY = Buffer.from('{"title":"x"}');
const NOW = new Date('2026-11-23T09:30:00Z');
const forms = ['standard-webhooks'] as const;

function signed(timestamp = NOW): Record<string, string> {
    const signing = { forms, secrets: [SECRET] as const, vendor: vendorNamed('Acme'), body: BODY, id: 'm1', timestamp };
    return { 'content-type': 'application/json', ...Object.fromEntries(signatureHeaders(signing)) };
}

/** What untyped code gives in the place of what the types ask for. */
function refused(t: Test, more: object, expected: { code: string; field: string; message?: RegExp }, headers = signed()): void {
    const options = { secrets: [SECRET], forms, clock: () => NOW, ...more } as unknown as VerifyOptions;
    t.throws(() => verify(BODY, headers, options), expected);
}

const asked = (isNew: () => unknown): { replays: ReplayCache } => ({ replays: { isNew } as ReplayCache });

t.test('lets in nothing of which its memory does not say that it is new', async (t) => {
    const synchronous = { code: 'MISCONFIGURED', field: 'replays', message: /replays must answer true or false at once, not by a promise/ };
    const neither = { code: 'MISCONFIGURED', field: 'replays', message: /replays must answer true or false/ };
    refused(
        t,
        asked(() => false),
        { code: 'UNVERIFIED', field: 'webhook-id' },
    );
    refused(
        t,
        asked(async () => false),
        synchronous,
    );
    refused(
        t,
        asked(async () => true),
        synchronous,
    );
    refused(
        t,
        asked(() => Promise.reject(new Error('the store is away'))),
        synchronous,
    );
    for (const answer of [undefined, null, 0, 1, 'OK']) {
        refused(
            t,
            asked(() => answer),
            neither,
        );
    }
});

t.test('lets in no old message by a clock that tells no time', async (t) => {
    const old = signed(new Date(NOW.getTime() - 86_400_000));
    const noTime = { code: 'MISCONFIGURED', field: 'clock', message: /must give the time, as a Date/ };
    for (const now of [new Date(Number.NaN), Number.NaN, Date.now(), '2026', null, undefined]) {
        refused(t, { clock: () => now }, noTime, old);
        refused(t, { clock: () => now }, noTime);
    }

    // It tells one when it is looked at, and none later.
    const times = [NOW];
    refused(t, { clock: () => times.pop() ?? new Date(Number.NaN) }, { code: 'UNVERIFIED', field: 'webhook-timestamp' }, old);
});

t.test('takes no message of one form for one of another, which would be fresh for ever and say something else', (t) => {
    const old = signed(new Date(NOW.getTime() - 86_400_000));
    const [id, seconds, signature = ''] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => old[name]);
    const content = Buffer.from(`${id}.${seconds}.${BODY}`);
    const asBody = { 'x-acme-signature': signature.slice('v1,'.length) };
    for (const options of [{}, { forms: ['base64' as const] }]) {
        t.throws(() => verify(content, asBody, { secrets: [SECRET], clock: () => NOW, ...options }), {
            code: 'UNVERIFIED',
            field: 'x-acme-signature',
        });
    }

    // What somebody has got into a body is the body of a message with an id of its own.
    const seconds2 = String(NOW.getTime() / 1000);
    const body = Buffer.from(`{"title":"x.${seconds2}.y"}`);
    const asked = { forms: ['base64' as const], secrets: [SECRET] as const, vendor: vendorNamed('Acme'), body, id: 'm1', timestamp: NOW };
    const [[, ofBody = ''] = []] = [...signatureHeaders(asked)];
    const asMessage = { 'webhook-id': '{"title":"x', 'webhook-timestamp': seconds2, 'webhook-signature': `v1,${ofBody}` };
    refused(t, {}, { code: 'UNVERIFIED', field: 'webhook-id' }, asMessage);
    t.throws(() => verify(Buffer.from('y"}'), asMessage, { secrets: [SECRET], forms, clock: () => NOW }), {
        code: 'UNVERIFIED',
        field: 'webhook-id',
        message: /begins as a body does/,
    });

    for (const text of ['{"version":"1.2.3."}', '["a.1.b"]', '{"x":1.5}']) {
        const fit = { ...asked, body: Buffer.from(text) };
        t.strictSame(verify(fit.body, Object.fromEntries(signatureHeaders(fit)), { secrets: [SECRET] }).forms, ['base64'], text);
    }
    t.end();
});

t.test('refuses a memory that cannot be asked', async (t) => {
    for (const replays of [{}, null, { isNew: true }, new Set()]) {
        refused(t, { replays }, { code: 'MISCONFIGURED', field: 'replays', message: /must have the function isNew/ });
    }
});

/** The status of each of a message's copies, sent one after the other to a route of hapi. */
async function statuses(options: Partial<WebhookAuthOptions>, copies = 2): Promise<readonly number[]> {
    const server = Hapi.server({ debug: false });
    await server.register({ plugin, options: { secrets: [SECRET], forms, clock: () => NOW, ...options } });
    server.route({ method: 'POST', path: '/hook', options: { auth: 'webhook' }, handler: () => 'taken' });
    const answers: number[] = [];
    for (let copy = 0; copy < copies; copy += 1) {
        answers.push((await server.inject({ method: 'POST', url: '/hook', headers: signed(), payload: BODY })).statusCode);
    }

    return answers;
}

t.test('a route of hapi waits for a memory that several processes share', async (t) => {
    const own = replayCache();
    const shared: WebhookAuthOptions['replays'] = { isNew: async (id, time, oldest) => own.isNew(id, time, oldest) };
    t.strictSame(await statuses({ replays: shared }), [200, 401]);
    t.strictSame(await statuses({ replays: shared }), [401, 401], 'another process');
    t.strictSame(await statuses({ replays: replayCache() }), [200, 401], 'its own');
    t.strictSame(await statuses({ replays: { isNew: () => Promise.reject(new Error('the store is away')) } }), [503, 503]);
    for (const nothing of [undefined, Promise.resolve(undefined)] as unknown as boolean[]) {
        t.strictSame(await statuses({ replays: { isNew: () => nothing } }), [500, 500]);
    }
});

t.test('a route of hapi refuses a clock that tells no time', async (t) => {
    const clock = (() => new Date(Number.NaN)) as () => Date;
    await t.rejects(statuses({ clock }), { code: 'MISCONFIGURED', field: 'clock', message: /^webhook-auth options: clock must give/ });
});
