import Joi from 'joi';
import { ScanwireError } from './errors.ts';
import { instantOf } from './span.ts';

/** Writes an instant as `2026-11-21T09:30:00+00:00`: whole seconds and the numeric offset of one time zone. */
export type TimestampFormat = (instant: Date) => string;

/**
 * A writer of timestamps.
 *
 * @param timeZone IANA name, for example `Europe/Berlin`. Fractions of seconds are cut off.
 * @throws ScanwireError `MISCONFIGURED` for an unknown time zone.
 */
export function timestampFormat(timeZone = 'UTC'): TimestampFormat {
    if (timeZone === 'UTC') {
        // The tables of time zones take megabytes, and are not needed for this one.
        return rememberingOne((instant) => withOffset(instant, 0));
    }

    const offsetAt = offsetLookup(timeZone);
    return rememberingOne((instant) => withOffset(instant, offsetAt(instant)));
}

/** Rows that came together were made, and often changed, within the same second. */
function rememberingOne(format: TimestampFormat): TimestampFormat {
    let [known, text] = [Number.NaN, ''];
    return (instant) => {
        const second = Math.floor(instant.getTime() / SECOND_MS);
        if (second !== known) {
            text = format(instant);
            known = second;
        }
        return text;
    };
}

const SECOND_MS = 1_000;

const MINUTE_MS = 60_000;
const SECONDS_LENGTH = 'YYYY-MM-DDTHH:MM:SS'.length;
const ISO_LENGTH = 'YYYY-MM-DDTHH:MM:SS.sssZ'.length;

function withOffset(instant: Date, offsetMinutes: number): string {
    const local = offsetMinutes === 0 ? instant : new Date(instant.getTime() + offsetMinutes * MINUTE_MS);
    const iso = local.toISOString();
    // Years beyond 9999 have a sign and six digits.
    return iso.slice(0, SECONDS_LENGTH + iso.length - ISO_LENGTH) + offsetText(offsetMinutes);
}

function offsetText(minutes: number): string {
    if (minutes === 0) {
        return '+00:00';
    }

    const size = Math.abs(minutes);
    return `${minutes < 0 ? '-' : '+'}${twoDigits(Math.floor(size / 60))}:${twoDigits(size % 60)}`;
}

function twoDigits(value: number): string {
    return String(value).padStart(2, '0');
}

/** Offsets change on quarters of an hour, so within one the offset is looked up once. */
const QUARTER_MS = 15 * MINUTE_MS;
const CACHED_OFFSETS = 10_000;

/** Minutes by which the zone is ahead of UTC at an instant. */
function offsetLookup(timeZone: string): (instant: Date) => number {
    const format = offsetFormat(timeZone);
    const cache = new Map<number, number>();

    return (instant) => {
        const quarter = Math.floor(instant.getTime() / QUARTER_MS);
        const known = cache.get(quarter);
        if (known !== undefined) {
            return known;
        }

        if (cache.size >= CACHED_OFFSETS) {
            cache.clear();
        }

        const offset = parseOffset(format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? '');
        cache.set(quarter, offset);
        return offset;
    };
}

function offsetFormat(timeZone: string): Intl.DateTimeFormat {
    try {
        return new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
    } catch (cause) {
        throw new ScanwireError('MISCONFIGURED', 'timeZone must be the IANA name of a time zone', { field: 'timeZone', cause });
    }
}

/** `GMT+05:30` in minutes. Seconds, which only local mean times have, are dropped: an ISO 8601 offset has none. */
function parseOffset(text: string): number {
    const [, sign = '+', hours = '0', minutes = '0'] = /([+-])(\d{2}):(\d{2})/.exec(text) ?? [];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

const timestampType = (joi: Joi.Root): Joi.Extension => ({
    type: 'timestamp',
    base: joi.string(),
    messages: { 'timestamp.zone': '{{#label}} must be an ISO 8601 time with a zone, such as 2026-11-21T09:30:00Z' },
    coerce: {
        from: ['object', 'string'],
        method(value: unknown, helpers: Joi.CustomHelpers) {
            const text = canonical(value);
            return text === null ? { value, errors: [helpers.error('timestamp.zone')] } : { value: text };
        },
    },
});

/** What is used of a Joi, from 17 on. */
interface ExtensibleJoi<Text> {
    string(): Text;
    extend(...extensions: never[]): unknown;
}

const extended = new WeakMap<object, { timestamp(): unknown }>();

/**
 * Joi type: a `Date` or any ISO 8601 text with a zone comes out as UTC text with milliseconds and `Z`, as events carry it.
 *
 * @param joi The Joi whose schema it becomes part of, where that is another one than ours: versions of Joi cannot be mixed.
 */
export function timestamp(): Joi.StringSchema;
export function timestamp<Text>(joi: ExtensibleJoi<Text>): Text;
export function timestamp(joi: ExtensibleJoi<unknown> = Joi): unknown {
    const own = extended.get(joi) ?? (joi.extend(timestampType as never) as { timestamp(): unknown });
    extended.set(joi, own);
    return own.timestamp();
}

function canonical(value: unknown): string | null {
    const time = value instanceof Date ? value : typeof value === 'string' ? instantOf(value) : null;
    return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();
}
