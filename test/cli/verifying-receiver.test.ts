import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { verifyMessage } from '../../cli/verifying-receiver.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwJ2x5zJ0wHcM=';
const BODY = Buffer.from('{"title":"é"}');
const NOW = new Date();

/** As a receiver written by somebody else would compute it. */
function openssl(format: string[], body: Uint8Array): Buffer {
    return execFileSync('openssl', ['dgst', '-sha256', '-hmac', SECRET, ...format], { input: body });
}

const BASE64 = openssl(['-binary'], BODY).toString('base64');
const HEX = openssl(['-r'], BODY).toString().split(' ')[0] as string;

function standard(timestamp: Date): Record<string, string> {
    return {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(timestamp.getTime() / 1000)),
        'webhook-signature': `v1,AAAA ${new Webhook(SECRET).sign('msg_1', timestamp, BODY.toString())}`,
    };
}

t.test('verifies every form', async (t) => {
    t.same(verifyMessage({ 'x-vendor-signature': BASE64 }, BODY, SECRET, NOW), { ok: true, forms: ['base64'], reason: null });
    t.match(verifyMessage({ 'x-acme-signature': HEX }, BODY, SECRET, NOW), { ok: true, forms: ['hex'] });
    t.match(verifyMessage({ 'x-vendor-signature': `sha256=${HEX}` }, BODY, SECRET, NOW), { ok: true, forms: ['sha256-hex'] });
    t.match(verifyMessage(standard(NOW), BODY, SECRET, NOW), { ok: true, forms: ['standard-webhooks'] });
    t.match(verifyMessage({ 'x-vendor-signature': BASE64, 'x-vendor-signature-hex': HEX, ...standard(NOW) }, BODY, SECRET, NOW), {
        ok: true,
        forms: ['base64', 'hex', 'standard-webhooks'],
    });
});

t.test('refuses a message that was altered, is unsigned, is old or has one wrong signature', async (t) => {
    const refused = [
        verifyMessage({ 'x-vendor-signature': BASE64 }, Buffer.from('{}'), SECRET, NOW),
        verifyMessage({ 'x-vendor-signature': BASE64 }, BODY, 'other', NOW),
        verifyMessage({ 'x-vendor-signature': createHmac('sha256', '').update(BODY).digest('base64') }, BODY, '', NOW),
        verifyMessage({}, BODY, SECRET, NOW),
        verifyMessage({ 'x-vendor-signature': '' }, BODY, SECRET, NOW),
        verifyMessage({ 'x-vendor-signature': BASE64, 'x-vendor-signature-hex': 'ff' }, BODY, SECRET, NOW),
        verifyMessage(standard(new Date(NOW.getTime() - 301_000)), BODY, SECRET, NOW),
        verifyMessage({ ...standard(NOW), 'webhook-id': 'msg_2' }, BODY, SECRET, NOW),
        verifyMessage({ ...standard(NOW), 'webhook-timestamp': 'soon' }, BODY, SECRET, NOW),
    ];
    for (const verification of refused) {
        t.match(verification, { ok: false, forms: [], reason: String });
    }
});
