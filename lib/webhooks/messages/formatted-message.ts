import { ScanwireError } from '../../errors.ts';
import type { StoredEvent } from '../events/new-event.ts';
import { authorizationOf, repeatsAuthorization, unsealAuthentication } from '../exporters/authentication.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import { native } from '../formats/envelopes.ts';
import { type FormatEvent, type Formatter, formatEvent, formatterOf, lackingFormat } from '../formats/format.ts';
import { hasFormatSecret, sealedFormatSecret, withFormatSecret, withMaskedSecret } from '../formats/format-secret.ts';
import { MASK } from '../outcomes/masking.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { type HeaderPairs, messageHeaders, unsealHeaders } from './message-headers.ts';
import { unsealSecrets } from './signing-secret.ts';

/** What is sent of an event in a format other than `native`: made when it was accepted, the same in every attempt. */
export interface FormattedMessage {
    readonly contentType: string;
    /** Headers of the format, beside those of every message. */
    readonly headers: HeaderPairs;
    /** The text that is signed and sent, as UTF-8, once the format's secret has replaced its placeholder. */
    readonly body: string;
    /** Why it could not be made: the delivery then ends with this. Null otherwise. */
    readonly failure: string | null;
}

/** Keeps messages of deliveries that were accepted by a process without the format, in place of why it could make none. */
export interface MessageStore {
    /**
     * Keeps what was made for a delivery, as long as its message has this failure still: who comes first is heeded.
     *
     * @param failure {@link FormattedMessage.failure} of what was stored at acceptance.
     * @returns What the delivery sends from now on, by whomever it was made. Null where there is no message: the delivery is gone, its event was erased,
     *     or it sends the body of that.
     */
    keep(deliveryId: string, message: FormattedMessage, failure: string): Promise<FormattedMessage | null>;
}

/** The parts of the context that decide what formats make of events. */
export type Formatting = Pick<WebhooksContext, 'formats' | 'vendor' | 'maxBodyBytes'>;

/**
 * The longest message, in bytes, of a body of at most so many. An accepted body must not be too long for any format: `ocsf` names parts of it twice, and
 * puts words of its own beside each of many small ones, which comes to a bit more than twice the body.
 */
function maxMessageBytes(maxBodyBytes: number): number {
    return 3 * maxBodyBytes + 65_536;
}

/** Makes what is sent of an event, null for its own body. */
export type MessageMaker = (event: FormatEvent) => FormattedMessage | null;

/**
 * Makes the messages of an exporter, for as long as neither its format nor its template changes. What a format cannot make ends that one
 * delivery with the reason, when it is sent: the event is accepted all the same, and others get it.
 */
export function messageMaker(choice: Pick<StoredExporter, 'format' | 'template'>, formatting: Formatting): MessageMaker {
    if (choice.format === native.name) {
        return () => null;
    }

    const { formats, vendor } = formatting;
    const maxBytes = maxMessageBytes(formatting.maxBodyBytes);
    let make: Formatter | undefined;
    return (event) => {
        try {
            make ??= formatterOf(formats, choice, vendor.name);
            const { contentType, headers, body } = make(event);
            if (body.length > maxBytes) {
                throw new ScanwireError('MISCONFIGURED', `A message must be at most ${maxBytes} bytes; this one has ${body.length}`);
            }
            return { contentType, headers, body: decoder.decode(body), failure: null };
        } catch (error) {
            const reason = error instanceof ScanwireError ? error.message : 'What it made is not UTF-8';
            return { contentType: native.contentType, headers: [], body: '', failure: failureOf(choice.format, reason) };
        }
    };
}

function failureOf(format: string, reason: string): string {
    return `Format ${format}: ${reason}`;
}

/** Messages are kept as text. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** An event of which nothing can be sent, whoever sends it. The fault is neither the receiver's nor that of this process. */
export class UnmakeableMessage extends ScanwireError {
    /** @param field What cannot be used of it: `format` or `body`. */
    constructor(message: string, field: 'format' | 'body', cause?: unknown) {
        super('INVALID_INPUT', message, { field, cause });
    }
}

/** What goes out of an event. */
export interface OutgoingBody extends Pick<FormattedMessage, 'contentType' | 'headers'> {
    readonly bytes: Uint8Array;
}

/**
 * @throws UnmakeableMessage for a message that could not be made or a body that is no JSON; ScanwireError `UNSEALABLE`, or `MISCONFIGURED` for a message that is
 *     still to be made by a process that has the format.
 */
export function outgoingBody(
    event: StoredEvent,
    stored: FormattedMessage | null,
    exporter: StoredExporter,
    { keyRing }: Pick<WebhooksContext, 'keyRing'>,
): OutgoingBody {
    if (stored === null) {
        assertJson(event);
        return { contentType: native.contentType, headers: [], bytes: Buffer.from(event.body) };
    }

    if (isUnmade(stored, exporter)) {
        throw lacking(exporter);
    }
    if (stored.failure !== null) {
        throw new UnmakeableMessage(stored.failure, 'format');
    }

    const bytes = Buffer.from(stored.body);
    const [sealed] = sealedFormatSecret(exporter);
    if (sealed !== undefined) {
        return { ...stored, bytes: withFormatSecret(bytes, keyRing.open(sealed.sealed, sealed.context)) };
    }

    if (hasFormatSecret(stored.contentType, bytes)) {
        throw new UnmakeableMessage('The format that it was made in had a secret, which the exporter has no more', 'format');
    }
    return { ...stored, bytes };
}

/** A message of which only the failure is known. */
export type UnmadeMessage = FormattedMessage & { readonly failure: string };

/** Whether the process that accepted the event has no such format. No attempt could send anything until now. */
export function isUnmade(message: FormattedMessage | null, { format }: Pick<StoredExporter, 'format'>): message is UnmadeMessage {
    return message !== null && message.failure === failureOf(format, lackingFormat(format));
}

/** Of what a process does for an exporter whose format it does not have: another may. */
export function lacking({ format }: Pick<StoredExporter, 'format'>): ScanwireError {
    return new ScanwireError('MISCONFIGURED', lackingFormat(format), { field: 'format' });
}

/** Makes what could not be made when the event was accepted. @param event With its body, which is loaded for no other message than the native one. */
export function madeAfterwards(
    { id, kind, body, createdAt }: StoredEvent,
    exporter: StoredExporter,
    formatting: Formatting,
): FormattedMessage {
    return messageMaker(exporter, formatting)(formatEvent({ id, kind, time: createdAt, text: body })) as FormattedMessage;
}

/** Events whose body needs no check: it was made here, or was checked already, since one event is sent to many exporters. */
const checkedEvents = new WeakSet<object>();

/** Notes that this process has made the body of an event: to parse one of a MiB again would keep everybody else waiting. */
export function noteMade(event: Pick<StoredEvent, 'body'>): void {
    checkedEvents.add(event);
}

/** Checks that a body is JSON still. It was when the event was accepted, but a row that was changed since must not go out signed. */
function assertJson(event: Pick<StoredEvent, 'body'>): void {
    if (checkedEvents.has(event)) {
        return;
    }

    try {
        JSON.parse(event.body);
        checkedEvents.add(event);
    } catch (cause) {
        throw new UnmakeableMessage('The stored body of the event is not JSON', 'body', cause);
    }
}

/** Headers of a message that is sent at a time, with what is secret masked, and how many bytes its body has. @throws as {@link outgoingBody}. */
export function maskedMessage(
    event: StoredEvent,
    message: FormattedMessage | null,
    { exporter, time }: { readonly exporter: StoredExporter; readonly time: Date },
    { keyRing, vendor }: Pick<WebhooksContext, 'keyRing' | 'vendor'>,
): { readonly headers: HeaderPairs; readonly bytes: number } {
    const { bytes, ...format } = outgoingBody(event, message, exporter, { keyRing });
    const secrets = unsealSecrets(exporter, keyRing, time);
    const signing = { vendor, forms: exporter.signatures, secrets, body: bytes, id: event.id, timestamp: time };
    const headers = messageHeaders(event.kind, signing, format, masked(unsealHeaders(exporter, keyRing)));
    const authentication = unsealAuthentication(exporter, keyRing);
    if (repeatsAuthorization(authentication, headers)) {
        throw new ScanwireError('INVALID_INPUT', 'Header Authorization is given twice', { field: 'headers' });
    }
    // The sender adds it to as many headers as there may be.
    return { headers: [...headers, ...masked(authorizationOf(authentication))], bytes: bytes.length };
}

function masked(headers: HeaderPairs): HeaderPairs {
    return headers.map(([name]) => [name, MASK]);
}

/** What is sent in the body, with the secret of the format masked. */
export function maskedBody(body: string, message: FormattedMessage | null): string {
    return message === null ? body : Buffer.from(withMaskedSecret(Buffer.from(message.body))).toString();
}
