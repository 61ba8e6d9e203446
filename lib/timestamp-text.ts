import Joi from 'joi';

const ISO_WITH_ZONE = /^\d{4}-(\d{2})-(\d{2})T\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})$/i;

const extended = Joi.extend((joi) => ({
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
}));

/** Joi type: a `Date` or any ISO 8601 text with a zone comes out as UTC text with milliseconds and `Z`, as events carry it. */
export const timestamp = (): Joi.StringSchema => extended.timestamp();

function canonical(value: unknown): string | null {
    const time = value instanceof Date ? value : typeof value === 'string' ? parse(value) : null;
    return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/** Null for what is no ISO 8601 time with a zone; JavaScript itself would take 30 February for 2 March. */
function parse(text: string): Date | null {
    const [, month, day] = ISO_WITH_ZONE.exec(text) ?? [];
    if (month === undefined || Number(day) > daysIn(Number(text.slice(0, 4)), Number(month))) {
        return null;
    }

    return new Date(
        text
            .toUpperCase()
            .replace(',', '.')
            .replace(/([+-]\d{2})(\d{2})$/, '$1:$2'),
    );
}

function daysIn(year: number, month: number): number {
    return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
