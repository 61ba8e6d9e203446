import type { HeaderPairs } from '../exporters/exporter.ts';
import { SECRET_PLACEHOLDER } from './format-secret.ts';

/** An event as a format sees it: as it was accepted, whatever exporter it goes to. */
export interface FormatEvent {
    /** The event kind, for example `idr_investigation_created`. */
    readonly kind: string;
    /** The message id: the same on every try and for every exporter. */
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
    /** Headers of its own, besides `Content-Type`; they keep the rules of additional headers. */
    readonly headers?: HeaderPairs;
    /** The exact body. Text goes out as UTF-8. {@link SECRET_PLACEHOLDER} stands where the format's secret belongs. */
    readonly body: string | Uint8Array;
}

/** What kind of secret a format needs, and how one looks. */
export interface FormatSecret {
    /** Names it to people, for example `routing key`. */
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
     * A pure function: the same event and settings give the same bytes, whenever and wherever it is called. It is called once for an event
     * and an exporter, at acceptance; every try sends what came out.
     */
    readonly make: (event: FormatEvent, settings: FormatSettings) => Formatted;
    /** Of a format that needs a secret. */
    readonly secret?: FormatSecret;
    /** Of a format that needs a template: refuses one that it cannot use. */
    readonly checkTemplate?: (template: unknown) => void;
}

/** What {@link formatEvent} is made of. */
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
