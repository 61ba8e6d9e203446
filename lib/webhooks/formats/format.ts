import { ScanwireError } from '../../errors.ts';
import { testEvent } from '../events/event-kinds.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { checkAdditionalHeaders, MAX_HEADERS } from '../messages/message-headers.ts';
import { vendorNamed } from '../messages/signature.ts';
import type { FormatName } from '../setting-values.ts';
import { pagerduty, sentinel, splunkHec } from './alerts.ts';
import { slack, teams } from './chat.ts';
import { cloudevents, cloudeventsBinary, native } from './envelopes.ts';
import { SECRET_PLACEHOLDER } from './format-secret.ts';
import { ocsf } from './ocsf.ts';
import { template } from './template.ts';

/** An event as a format sees it: as it was accepted, whatever exporter it goes to. */
export interface FormatEvent {
    /** The event kind, for example `idr_investigation_created`. */
    readonly kind: string;
    /** The message id, which is the id of the event: the same in every attempt and for every exporter. */
    readonly id: string;
    /** When it was accepted. */
    readonly time: Date;
    /** Its body: compact JSON, as the native format sends it. */
    readonly text: string;
    /** The same, parsed. Not to be changed: all formats of an event share it. */
    readonly body: Readonly<Record<string, unknown>>;
}

/** What a format may know besides the event. */
export interface FormatSettings {
    /** The vendor's name, for example `Acme`. */
    readonly vendor: string;
    /** The exporter's template, a JSON document; null when it has none. */
    readonly template: unknown;
}

/** What a format makes of an event. */
export interface Formatted {
    /** Headers of its own, besides `Content-Type`; with the exporter's additional ones they keep the rules of additional headers. */
    readonly headers?: HeaderPairs;
    /** The exact body. Text goes out as UTF-8. {@link SECRET_PLACEHOLDER} stands where the format's secret belongs. */
    readonly body: string | Uint8Array;
}

/** What kind of secret a format needs, and how one looks. */
export interface FormatSecret {
    /** What people call it, for example `routing key`. */
    readonly name: string;
    readonly pattern: RegExp;
    /** Says the pattern in words, for example `must be 32 letters and digits`. */
    readonly rule: string;
}

/** A form in which bodies go out. */
export interface Format {
    /** 1 to 64 small letters, digits and dashes. */
    readonly name: string;
    readonly contentType: string;
    /**
     * A pure function: the same event and settings give the same bytes, whenever and wherever it is called. It is called at acceptance:
     * once for an event and all exporters with the format, or for each exporter that has a template; and anew if the event has to be routed again.
     * Every attempt sends what came out. It is also called when an exporter is saved, and for previews.
     */
    readonly make: (event: FormatEvent, settings: FormatSettings) => Formatted;
    /** The secret, for a format that needs one. */
    readonly secret?: FormatSecret;
    /** For a format that needs a template: refuses a template that it cannot use. */
    readonly checkTemplate?: (template: unknown) => void;
}

/** The parts of an accepted event from which {@link formatEvent} makes its result. */
export type AcceptedBody = Pick<FormatEvent, 'kind' | 'id' | 'time' | 'text'>;

/** The event for all the formats that it is sent in: its body is parsed once, and only when one of them asks. */
export function formatEvent({ kind, id, time, text }: AcceptedBody): FormatEvent {
    let body: FormatEvent['body'] | undefined;
    return {
        kind,
        id,
        time,
        text,
        get body() {
            body ??= JSON.parse(text) as FormatEvent['body'];
            return body;
        },
    };
}

/** The table of formats: every format by its name. */
export type Formats = ReadonlyMap<string, Format>;

const BUILT_IN: Readonly<Record<FormatName, Format>> = {
    native,
    cloudevents,
    'cloudevents-binary': cloudeventsBinary,
    ocsf,
    slack,
    teams,
    pagerduty,
    'splunk-hec': splunkHec,
    sentinel,
    template,
};

/**
 * The table of formats: those of scanwire, and those that the application adds.
 *
 * @throws ScanwireError `MISCONFIGURED` for a malformed name or content type, and for a name that exists already.
 */
export function formatTable(added: readonly Format[] = []): Formats {
    const table = new Map(Object.entries<Format>(BUILT_IN));
    for (const [index, format] of added.entries()) {
        const at = `formats[${index}]`;
        if (!/^[a-z0-9-]{1,64}$/.test(format.name)) {
            throw misconfigured(`${at}.name`, 'must be 1 to 64 small letters, digits and dashes');
        }

        if (table.has(format.name)) {
            throw misconfigured(`${at}.name`, `must be new: ${format.name} exists already`);
        }

        if (!/^[\x20-\x7e]{1,128}$/.test(format.contentType)) {
            throw misconfigured(`${at}.contentType`, 'must be 1 to 128 visible ASCII characters and spaces');
        }

        table.set(format.name, format);
    }

    return table;
}

/** A format is not in the table of this process. It may be in that of another one. */
export class UnknownFormat extends ScanwireError {
    constructor(message: string) {
        super('INVALID_INPUT', message, { field: 'format' });
    }
}

/** The format of an exporter, as it is stored. */
export interface FormatChoice {
    /** The name of a format. */
    readonly format: string;
    /** For the format `template`: a JSON document, as an object or a list. Else null. */
    readonly template: unknown;
}

/** What {@link checkFormat} looks at besides the choice. */
export interface FormatCheckOptions {
    /** The vendor's name, for example `Acme`. */
    readonly vendor: string;
    /** The secret that is given with the choice, or that is kept from before. Undefined for none. */
    readonly secret?: string | undefined;
    /** The exporter's additional headers, which a format's own must not repeat, and with which they must keep the limits. */
    readonly headers?: HeaderPairs;
}

/**
 * Refuses, when an exporter is saved, a choice that could not be sent: an unknown format; a template or a secret that is missing or not wanted; a
 * header of the format that the exporter also has among its additional ones, or too many of both. To find out, it makes the message of a `test`.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field `format`, `template` (and the path in it), `formatSecret` or `headers`.
 */
export function checkFormat(
    formats: Formats,
    choice: FormatChoice,
    { vendor, secret, headers: additional = [] }: FormatCheckOptions,
): void {
    const format = formats.get(choice.format);
    if (format === undefined) {
        throw new UnknownFormat(`Format must be one of ${[...formats.keys()].join(', ')}`);
    }

    checkTemplate(format, choice.template);
    checkSecret(format, secret);
    const headers = checkAdditionalHeaders(madeAtSave(formatterOf(formats, choice, vendor)).headers, vendorNamed(vendor));
    const present = new Set(additional.map(([name]) => name.toLowerCase()));
    const twice = headers.find(([name]) => present.has(name.toLowerCase()));
    if (twice !== undefined) {
        throw refused(`Header ${twice[0]} is set by the format ${format.name}`, 'headers');
    }
    if (headers.length + additional.length > MAX_HEADERS) {
        throw refused(`Headers must be at most ${MAX_HEADERS} with the ${headers.length} of the format ${format.name}`, 'headers');
    }
    checkAdditionalHeaders([...headers, ...additional], vendorNamed(vendor));
}

function checkTemplate({ name, checkTemplate: check }: Format, document: unknown): void {
    const given = document !== null && document !== undefined;
    if (given !== (check !== undefined)) {
        throw refused(given ? `Format ${name} takes no template` : `Format ${name} needs a template`, 'template');
    }

    check?.(document);
}

function checkSecret({ name, secret: wanted }: Format, secret: string | undefined): void {
    if (wanted === undefined && secret !== undefined) {
        throw refused(`Format ${name} takes no secret`, 'formatSecret');
    }

    if (wanted !== undefined && secret === undefined) {
        throw refused(`Format ${name} needs a ${wanted.name}`, 'formatSecret');
    }

    if (wanted !== undefined && secret !== undefined && !wanted.pattern.test(secret)) {
        throw refused(`The ${wanted.name} ${wanted.rule}`, 'formatSecret');
    }
}

/** The message of a `test`. If it cannot be made now, that is refused as an error in the settings that are being saved. */
function madeAtSave(formatter: Formatter): FormatterResult {
    const time = new Date(0);
    const id = '00000000-0000-4000-8000-000000000000';
    const text = JSON.stringify({ timestamp: time, webhook_id: id, webhook_name: '' });
    try {
        return formatter(formatEvent({ kind: testEvent.name, id, time, text }));
    } catch (cause) {
        const { message, field = 'format' } = cause as ScanwireError;
        throw new ScanwireError('INVALID_INPUT', message, { field, cause });
    }
}

/** What a formatter has made of an event. */
export interface FormatterResult {
    readonly contentType: string;
    /** The format's own headers besides `Content-Type`. */
    readonly headers: HeaderPairs;
    /** With the placeholder where the format's secret belongs. */
    readonly body: Buffer;
}

/** Makes the messages of an exporter, or of all that have the same format and no template. */
export type Formatter = (event: FormatEvent) => FormatterResult;

/**
 * The formatter of an exporter. Keep it for as long as neither the choice nor the vendor changes, since every formatter parses its template.
 *
 * @param vendor The vendor's name, for example `Acme`.
 * @throws ScanwireError `MISCONFIGURED` for a format that is not in the table (any more). The formatter throws the same when the format cannot
 *     make a message of an event; that concerns this exporter only.
 */
export function formatterOf(formats: Formats, { format: name, template: document }: FormatChoice, vendor: string): Formatter {
    const format = formats.get(name);
    if (format === undefined) {
        throw unusable(lackingFormat(name));
    }

    const names = vendorNamed(vendor);
    const isBuiltIn = Object.values(BUILT_IN).includes(format);
    const settings = { vendor, template: document };
    return (event) => {
        const { headers = [], body } = madeBy(format, event, settings);
        if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
            throw unusable(`Format ${name} must give a body of text or bytes`);
        }

        return {
            contentType: format.contentType,
            // those of scanwire keep the rules, and all are checked again when they are sent
            headers: isBuiltIn || headers.length === 0 ? headers : checkAdditionalHeaders(headers, names),
            body: typeof body === 'string' ? Buffer.from(body) : Buffer.from(body),
        };
    };
}

function madeBy(format: Format, event: FormatEvent, settings: Parameters<Format['make']>[1]): ReturnType<Format['make']> {
    try {
        return format.make(event, settings);
    } catch (cause) {
        if (cause instanceof ScanwireError) {
            throw cause;
        }

        throw unusable(`Format ${format.name} cannot make a message of this event`, cause);
    }
}

/** What to say of the format of an exporter that this process does not have. */
export function lackingFormat(name: string): string {
    return `This process has no format ${name}: it is none of scanwire, and none that its application has given`;
}

function refused(message: string, field: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}

/** The error for a format that turns out to be unusable only when a message is made, although the choice was checked. */
function unusable(message: string, cause?: unknown): ScanwireError {
    return new ScanwireError('MISCONFIGURED', message, { field: 'format', cause });
}

function misconfigured(field: string, rule: string): ScanwireError {
    return new ScanwireError('MISCONFIGURED', `webhooks options: ${field} ${rule}`, { field });
}
