/*
 * A process of its own: counts by what lengths `verify` compares, each case in a line of JSON. Whatever else compares a text that was signed with is
 * not seen here, so that the module is read for that by the test.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const compared: number[] = [];
const { timingSafeEqual } = crypto;
crypto.timingSafeEqual = (one, other) => {
    compared.push(one.byteLength);
    return timingSafeEqual(one, other);
};
syncBuiltinESMExports();

const { verify } = await import('../../../lib/verify/index.ts');
const { signatureHeaders, vendorNamed } = await import('../../../lib/webhooks/messages/signature.ts');
const { SIGNATURE_FORMS } = await import('../../../lib/webhooks/setting-values.ts');

const SECRETS = ['first', 'second', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwJ2x5zJ0wHcM='] as const;
const BODY = Buffer.from('{"title":"x"}');
const NOW = new Date('2026-11-23T09:30:00Z');

type Form = (typeof SIGNATURE_FORMS)[number];

/** The header that holds the signature, and the others. */
function signedBy(secret: string, form: Form): { readonly name: string; readonly text: string; readonly others: Record<string, string> } {
    const signing = { forms: [form], secrets: [secret] as [string], vendor: vendorNamed('Acme'), body: BODY, id: 'm', timestamp: NOW };
    const headers = Object.fromEntries(signatureHeaders(signing));
    const name = form === 'standard-webhooks' ? 'webhook-signature' : 'X-Acme-Signature';
    const { [name]: text = '', ...others } = headers;
    return { name, text, others };
}

const flipped = (text: string, at: number): string => {
    const index = at < 0 ? text.length + at : at;
    return `${text.slice(0, index)}${text[index] === 'a' ? 'b' : 'a'}${text.slice(index + 1)}`;
};

/** What stands before the digest. */
const START: Readonly<Record<Form, number>> = { base64: 0, hex: 0, 'sha256-hex': 7, 'standard-webhooks': 3 };

for (const form of SIGNATURE_FORMS) {
    // A name that says the form, so that a wrong text is not taken for one of another form.
    const suffix = { base64: '-Base64', hex: '-Hex', 'sha256-hex': '-Sha256', 'standard-webhooks': '' }[form];
    const [first, last] = [signedBy(SECRETS[0], form), signedBy(SECRETS[2], form)];
    const { name, text, others } = first;
    const start = START[form];
    const cases: Readonly<Record<string, string>> = {
        'right by the first secret': text,
        'right by the last secret': last.text,
        'wrong in the first byte': flipped(text, start),
        'wrong in the last byte': flipped(text, text.endsWith('=') ? -2 : -1),
        'too short': text.slice(0, -1),
        'too long': `${text}a`,
        'neither hexadecimal nor base64': `${text.slice(0, start)}${'*'.repeat(text.length - start)}`,
        'of several bytes a character': `${text.slice(0, start)}${'é'.repeat(text.length - start)}`,
        empty: '',
    };
    const several: Readonly<Record<string, string>> = {
        'the first of three right': `${text} v1,x v1,y`,
        'the last of three right': `v1,x v1,y ${text}`,
        'three wrong ones': `v1,x v1,y ${flipped(text, start)}`,
    };
    for (const [what, given] of Object.entries({ ...cases, ...(form === 'standard-webhooks' && several) })) {
        report(form, what, { ...others, [`${name}${suffix}`]: given });
    }
    if (form !== 'standard-webhooks') {
        const two = (one: string, other: string) => ({ [`${name}${suffix}`]: one, [name]: other });
        report(form, 'two that are right', two(text, last.text));
        report(form, 'two, the first wrong', two(flipped(text, start), last.text));
        report(form, 'two, the second wrong', two(text, flipped(last.text, start)));
    }
}

function report(form: Form, what: string, headers: Readonly<Record<string, string>>): void {
    compared.length = 0;
    let verified = true;
    try {
        verify(BODY, headers, { secrets: SECRETS, clock: () => NOW });
    } catch {
        verified = false;
    }
    process.stdout.write(`${JSON.stringify({ form, what, verified, compared })}\n`);
}
