import { isObject } from '../../lib/schema-validation.ts';

/** Whether a text stands in one of the texts of a row, those within `data` or `datastore` and their keys included, in upper or lower case. */
export function hasText(row: Readonly<Record<string, unknown>>, text: string): boolean {
    const wanted = text.toLowerCase();
    return Object.values(row).some((value) => isWithin(value, wanted));
}

function isWithin(value: unknown, wanted: string): boolean {
    if (typeof value === 'string') {
        return value.toLowerCase().includes(wanted);
    }
    if (Array.isArray(value)) {
        return value.some((item) => isWithin(saidOf(item), wanted));
    }
    return (
        isObject(value) &&
        Object.entries(value).some(([key, inner]) => key.toLowerCase().includes(wanted) || isWithin(saidOf(inner), wanted))
    );
}

/** Within a note a number is what a scanner has read somewhere, a port say; in a column it is a count or an id. */
function saidOf(value: unknown): unknown {
    return typeof value === 'number' ? String(value) : value;
}
