import { timingSafeEqual } from 'node:crypto';
import { isDate } from 'node:util/types';
import { type Clock, systemClock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { BODY_FORMS, type BodyForm, bodyDigest, standardSignatures, vendorNamed } from '../webhooks/messages/signature.ts';
import { MAX_SECRETS, wrongSecret } from '../webhooks/messages/signing-secret.ts';
import { SIGNATURE_FORMS, type SignatureForm } from '../webhooks/setting-values.ts';
import type { ReplayCache } from './replay-cache.ts';

/** The headers of a message as Node, a framework or `fetch` has them, or as pairs; names in any case. */
export type MessageHeaders =
    | Readonly<Record<string, string | readonly string[] | undefined>>
    | Iterable<readonly [name: string, value: string]>;

/** What a message is verified with. */
export interface VerifyOptions {
    /** The secrets that may have signed, as they were shown, in any order: while one is rotated, the new one and the one before it. */
    readonly secrets: readonly string[];
    /**
     * The forms that count, every one by default. A message must have one of them, and each that it has must be right; what it carries of
     * other forms is not looked at. Only `standard-webhooks` signs a time: whoever accepts another form accepts an old message too.
     */
    readonly forms?: readonly SignatureForm[] | undefined;
    /** How far the signed time may be from now on either side, in milliseconds, a second to a day; 5 minutes by default. */
    readonly tolerance?: number | undefined;
    /**
     * Refuses what has come before: {@link replayCache}. Goes with `forms: ['standard-webhooks']` only: the other forms sign every try of a
     * message alike, and a sender that gets no answer must be able to try again. It answers at once, never by a promise: a store that is
     * shared is asked afterwards, with the `id` and `time` that were verified.
     */
    readonly replays?: ReplayCache | undefined;
    /** The sender's name in its headers, `Acme` for `X-Acme-Signature`, in any case. By default any name. */
    readonly vendor?: string | undefined;
    /** Default: the clock of the machine. */
    readonly clock?: Clock | undefined;
}

/** What is known of a message that was verified. */
export interface Verified {
    /** The forms that were found right, one at least. */
    readonly forms: readonly SignatureForm[];
    /** The same on every try of the message. Null unless `standard-webhooks` was verified, as no other form signs an id. */
    readonly id: string | null;
    /** When this try was signed, in whole seconds; null likewise. */
    readonly time: Date | null;
    /** The event kind as `X-<Vendor>-Event` has it, null without. No form signs it: a kind that matters is also to be told by the body. */
    readonly kind: string | null;
}

/** 5 minutes, as Standard Webhooks asks for. */
export const TOLERANCE = 300_000;
/** Times are signed in whole seconds: less was meant in seconds, and would take hardly any message. */
export const MIN_TOLERANCE = 1000;
/** The longest tolerance of a timestamp, in milliseconds: a day. */
export const MAX_TOLERANCE = 86_400_000;

/**
 * Verifies a message that the webhook exporter has sent, in constant time: that it was signed with one of the secrets, over these bytes,
 * and where its form says so lately and for the first time.
 *
 * @param raw The body as it came, before anything parsed it.
 * @throws ScanwireError `UNVERIFIED` with the header at fault as `field`; `MISCONFIGURED` for options that can never work, such as no secret.
 *
 * @example
 * const { id, kind } = verify(raw, request.headers, { secrets: [secret] });
 */
export function verify(raw: Uint8Array, headers: MessageHeaders, options: VerifyOptions): Verified {
    if (!(raw instanceof Uint8Array)) {
        throw refusedOption(SUBJECT, 'raw', 'must be the bytes of the body as they came, not what was parsed of them');
    }

    assertVerifyOptions(options);
    const { secrets, forms = SIGNATURE_FORMS, vendor } = options;
    const given = textHeaders(headers);
    const bodyForms = bodySignatures(given, vendor).filter(({ form }) => forms.includes(form));
    const isStandard = forms.includes('standard-webhooks') && given.has('webhook-signature');
    if (bodyForms.length === 0 && !isStandard) {
        throw unverified('There is no signature of a form that is accepted');
    }

    if (bodyForms.length > 0) {
        verifyBody(bodyForms, secrets, raw);
    }

    const { id, time } = isStandard ? verifyStandard(given, raw, options) : { id: null, time: null };
    const verified: SignatureForm[] = bodyForms.map(({ form }) => form);
    return { forms: isStandard ? [...verified, 'standard-webhooks'] : verified, id, time, kind: kindOf(given, vendor) };
}

/** {@link VerifyOptions}, where whoever asks `replays` may wait for the answer. */
type CheckedOptions = Omit<VerifyOptions, 'replays'> & { readonly replays?: { readonly isNew: unknown } | undefined };

/**
 * Refuses options that can never work.
 *
 * @param subject Goes before the option in the message.
 * @throws ScanwireError `MISCONFIGURED`, with the option as `field` and never with a secret.
 */
export function assertVerifyOptions(options: CheckedOptions, subject: string = SUBJECT): void {
    const { secrets, forms, tolerance = TOLERANCE, replays, vendor, clock = systemClock } = options ?? {};
    const misconfigured = (field: string, rule: string): ScanwireError => refusedOption(subject, field, rule);
    if (!Array.isArray(secrets) || secrets.length === 0) {
        throw misconfigured('secrets', 'must be a list of at least one secret');
    }

    for (const [index, secret] of secrets.entries()) {
        const wrong = wrongSecret(secret);
        if (wrong !== null) {
            throw misconfigured(`secrets[${index}]`, wrong);
        }
    }

    if (forms !== undefined && !(Array.isArray(forms) && forms.length > 0 && forms.every((form) => SIGNATURE_FORMS.includes(form)))) {
        throw misconfigured('forms', `must be a list of at least one of ${SIGNATURE_FORMS.join(', ')}`);
    }

    if (!(tolerance >= MIN_TOLERANCE && tolerance <= MAX_TOLERANCE)) {
        throw misconfigured('tolerance', `must be ${MIN_TOLERANCE} to ${MAX_TOLERANCE} milliseconds`);
    }

    if (replays !== undefined && typeof replays?.isNew !== 'function') {
        throw misconfigured('replays', 'must have the function isNew');
    }

    if (replays !== undefined && (forms === undefined || forms.some((form) => form !== 'standard-webhooks'))) {
        throw misconfigured('replays', "needs forms: ['standard-webhooks'], since the other forms sign every try of a message alike");
    }

    if (typeof clock !== 'function') {
        throw misconfigured('clock', 'must be a function that gives the time');
    }

    const now: unknown = clock();
    if (!(isDate(now) && Number.isFinite(now.getTime()))) {
        throw misconfigured('clock', 'must give the time, as a Date');
    }

    if (vendor !== undefined) {
        vendorNamed(vendor, subject);
    }
}

const SUBJECT = 'verify options';

function refusedOption(subject: string, field: string, rule: string): ScanwireError {
    return new ScanwireError('MISCONFIGURED', `${subject}: ${field} ${rule}`, { field });
}

function unverified(message: string, field?: string): ScanwireError {
    return new ScanwireError('UNVERIFIED', message, field === undefined ? {} : { field });
}

/** Each header by its name in lower case. One that came several times is what HTTP makes of it, a text with commas, which is no signature. */
function textHeaders(headers: MessageHeaders): ReadonlyMap<string, string> {
    const pairs = Symbol.iterator in headers ? [...(headers as Iterable<readonly [string, string]>)] : Object.entries(headers);
    const texts = new Map<string, string>();
    for (const [name, value] of pairs) {
        if (value !== undefined) {
            const before = texts.get(name.toLowerCase());
            const text = typeof value === 'string' ? value : value.join(', ');
            texts.set(name.toLowerCase(), before === undefined ? text : `${before}, ${text}`);
        }
    }

    return texts;
}

/** A signature over the body, not looked at yet. */
interface BodySignature {
    readonly header: string;
    readonly form: BodyForm;
    readonly text: string;
}

/** Whether a message has signatures at all, right or wrong. */
export function hasSignature(headers: MessageHeaders, vendor?: string): boolean {
    const given = textHeaders(headers);
    return given.has('webhook-signature') || bodySignatures(given, vendor).length > 0;
}

const SIGNATURE_HEADER = /^x-[a-z0-9-]+-signature(-base64|-hex|-sha256)?$/;

function bodySignatures(headers: ReadonlyMap<string, string>, vendor: string | undefined): readonly BodySignature[] {
    return [...headers].flatMap(([header, text]) => {
        const match = SIGNATURE_HEADER.exec(header);
        if (match === null) {
            return [];
        }

        const [, suffix = ''] = match;
        const isSender = vendor === undefined || header === `x-${vendor.toLowerCase()}-signature${suffix}`;
        return isSender ? [{ header, form: formOf(suffix, text), text }] : [];
    });
}

const HEX = /^[0-9a-f]{64}$/;

/** The form by the end of the header's name, and where that says none by how the text is written. */
function formOf(suffix: string, text: string): BodyForm {
    const [named] = Object.entries(BODY_FORMS).find(([, form]) => form.suffix.toLowerCase() === suffix) ?? [];
    if (named !== undefined) {
        return named as BodyForm;
    }

    return text.startsWith('sha256=') ? 'sha256-hex' : HEX.test(text) ? 'hex' : 'base64';
}

/*
 * One key signs the body alone and, for `standard-webhooks`, id and time before it. What was signed for one form must not count for the other: a
 * message of any time would be the body of one without a time. Bodies are JSON objects and lists; no id begins as they do.
 */
const STANDARD_CONTENT = /^[^\s{["]\S*?\.\d{1,12}\./;
const BEGINS_AS_JSON = /^[{["]/;
/** More bytes than headers have, and so an id. */
const LONGEST_ID = 65_536;

function isStandardContent(raw: Uint8Array): boolean {
    return STANDARD_CONTENT.test(Buffer.from(raw.subarray(0, LONGEST_ID)).toString('latin1'));
}

function verifyBody(signatures: readonly BodySignature[], secrets: readonly string[], raw: Uint8Array): void {
    if (isStandardContent(raw)) {
        throw unverified('The body is no message, but what standard-webhooks signs of one', signatures[0]?.header);
    }

    const digests = secrets.map((secret) => bodyDigest(secret, raw));
    // All of them, whatever is wrong with one.
    const unfit = signatures.filter(({ form, text }) => {
        const expected = digests.map((digest) => BODY_FORMS[form].text(digest));
        return !isAnyOf([text], expected);
    });
    if (unfit[0] !== undefined) {
        const { header } = unfit[0];
        throw unverified(`Header ${header} does not fit the body and the secrets`, header);
    }
}

const SECONDS = /^\d{1,12}$/;

function verifyStandard(
    headers: ReadonlyMap<string, string>,
    raw: Uint8Array,
    { secrets, tolerance = TOLERANCE, replays, clock = systemClock }: VerifyOptions,
): { readonly id: string; readonly time: Date } {
    const [id = '', seconds = '', signatures = ''] = ['id', 'timestamp', 'signature'].map((name) => headers.get(`webhook-${name}`));
    if (id === '') {
        throw unverified('Header webhook-id is missing', 'webhook-id');
    }

    if (BEGINS_AS_JSON.test(id)) {
        throw unverified('Header webhook-id begins as a body does', 'webhook-id');
    }

    if (!SECONDS.test(seconds)) {
        throw unverified('Header webhook-timestamp must be whole seconds', 'webhook-timestamp');
    }

    // Each is compared with each of ours: more than a sender has secrets would let anybody choose how much work that is.
    const texts = signatures.split(' ', MAX_SECRETS + 1);
    if (texts.length > MAX_SECRETS) {
        throw unverified(`Header webhook-signature has more than ${MAX_SECRETS} signatures`, 'webhook-signature');
    }

    const expected = standardSignatures(secrets, { id, seconds, body: raw });
    if (!isAnyOf(texts, expected)) {
        throw unverified('Header webhook-signature does not fit the body and the secrets', 'webhook-signature');
    }

    const [time, now] = [new Date(Number(seconds) * 1000), clock()];
    // What cannot be compared is not within it either.
    if (!(Math.abs(now.getTime() - time.getTime()) <= tolerance)) {
        throw unverified(`Header webhook-timestamp is more than ${tolerance / 1000} s off`, 'webhook-timestamp');
    }

    if (replays !== undefined) {
        assertNew(replays.isNew(id, time, new Date(now.getTime() - tolerance)), SUBJECT, AT_ONCE);
    }

    return { id, time };
}

const AT_ONCE = 'true or false at once, not by a promise: a shared store is asked for what verify has answered';

/**
 * Refuses whatever a {@link ReplayCache} does not call new.
 *
 * @throws ScanwireError `UNVERIFIED` with the field `webhook-id` when it has come before; `MISCONFIGURED` when the answer says neither.
 */
export function assertNew(isNew: unknown, subject: string, rule = 'true or false'): void {
    if (isNew === true) {
        return;
    }

    if (isNew === false) {
        throw unverified('Header webhook-id is of a message that has come before', 'webhook-id');
    }

    // Whatever becomes of a promise, the message is refused.
    Promise.resolve(isNew).catch(() => {});
    throw refusedOption(subject, 'replays', `must answer ${rule}`);
}

const EVENT_HEADER = /^x-[a-z0-9-]+-event$/;

/** The event kind of a message, verified or not, as {@link Verified} has it. */
export function messageKind(headers: MessageHeaders): string | null {
    return kindOf(textHeaders(headers), undefined);
}

function kindOf(headers: ReadonlyMap<string, string>, vendor: string | undefined): string | null {
    const isEvent = (name: string): boolean =>
        vendor === undefined ? EVENT_HEADER.test(name) : name === `x-${vendor.toLowerCase()}-event`;
    return [...headers].find(([name]) => isEvent(name))?.[1] ?? null;
}

/** Longer than any signature. */
const LONGEST = 72;

/** Whether any is one of the others. Each is compared with each, all at one length, so that it takes as long for wrong ones as for right ones. */
function isAnyOf(given: readonly string[], expected: readonly string[]): boolean {
    const ours = expected.map(comparable);
    const equal = given.flatMap((text) => {
        const theirs = comparable(text);
        return ours.map((one) => timingSafeEqual(theirs, one));
    });
    return equal.includes(true);
}

/** How long a text is, and its bytes up to the longest signature. */
function comparable(text: string): Buffer {
    const bytes = Buffer.alloc(4 + LONGEST);
    bytes.writeUInt32BE(Buffer.byteLength(text));
    bytes.write(text, 4);
    return bytes;
}
