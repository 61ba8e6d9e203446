import { type Block, parseBlock, unmapped } from '../../addresses.ts';
import type { SchemaDescription } from '../../application-schema.ts';
import { ScanwireError } from '../../errors.ts';
import { isObject, isStorable, UNSTORABLE } from '../../schema-validation.ts';
import { timestamp } from '../../timestamp.ts';
import { describedBody } from './event-body.ts';
import type { EventKind } from './event-kinds.ts';
import { addressRange, type FoundValues, foundValues, type Range } from './found-values.ts';
import { type TextSearch, textSearch } from './text-search.ts';

/** What a condition may ask of a value. */
export const FILTER_OPS = ['=', '≠', 'in', 'contains', 'starts-with', 'matches-cidr', '<', '≤', '>', '≥', 'exists'] as const;

/** One of {@link FILTER_OPS}. */
export type FilterOp = (typeof FILTER_OPS)[number];

/** What values are compared with. */
export type Scalar = string | number | boolean | null;

/** A question about what a path leads to. */
export interface Condition {
    /**
     * Keys with dots between them. It leads through lists to all of their items: the operator is asked of each, and one that fits is enough; `≠`, and
     * `exists` with false, ask that none fits.
     */
    readonly path: string;
    readonly op: FilterOp;
    /** `in` and `matches-cidr` take lists. */
    readonly value: Scalar | readonly Scalar[];
}

/** Which bodies are wanted, as data: conditions under `all`, `any` and `not`. */
export type Filter = Condition | { readonly all: readonly Filter[] } | { readonly any: readonly Filter[] } | { readonly not: Filter };

/** Filters in filters, conditions in all, and characters of a filter as JSON. */
const [MAX_DEPTH, MAX_CONDITIONS, MAX_SIZE] = [8, 100, 65_536];
/** Characters of a path, and keys in it. */
const [MAX_PATH, MAX_KEYS] = [256, 16];
/** Characters of a value, and values of a list. */
const [MAX_TEXT, MAX_LIST] = [1024, 1000];
/** Maximum number of address blocks of `matches-cidr`. */
const MAX_BLOCKS = 100;

type Test = (found: FoundValues) => boolean;

/** What an operator takes, and what it makes of it. */
interface Operator {
    /** The value as it is kept, or undefined for one that the operator cannot take. */
    readonly accept: (value: unknown) => Condition['value'] | undefined;
    /** What {@link accept} takes, in words. */
    readonly rule: string;
    /** Makes the test of whether one of the values fits that a path leads to. */
    readonly test: (value: never, search: TextSearch) => Test;
    /** Whether the condition asks for bodies without such a value. */
    readonly inverted?: (value: Condition['value']) => boolean;
}

const equality: Operator = {
    accept: (value) => (isScalar(value) ? value : undefined),
    rule: `must be a text of at most ${MAX_TEXT} characters, a number, true, false or null`,
    test: (value: Scalar) => (found) => found.has(value),
};

const part: Omit<Operator, 'test'> = {
    accept: (value) => (value !== '' && isText(value) ? value : undefined),
    rule: `must be a text of 1 to ${MAX_TEXT} characters`,
};

const OPERATORS: Readonly<Record<FilterOp, Operator>> = {
    '=': equality,
    '≠': { ...equality, inverted: () => true },
    in: {
        accept: (value) => (isList(value) && value.every(isScalar) ? value : undefined),
        rule: `must be a list of 1 to ${MAX_LIST} texts, numbers, true, false or null`,
        test(value: readonly Scalar[]) {
            const wanted = new Set<unknown>(value);
            return (found) => found.hasOneOf(wanted);
        },
    },
    contains: { ...part, test: (value: string, search) => (found) => search.isIn(value, found) },
    'starts-with': { ...part, test: (value: string) => (found) => found.hasTextFrom(value) },
    'matches-cidr': {
        accept: (value) => (blocksOf(value) === undefined ? undefined : (value as Condition['value'])),
        rule: `must be an IPv4 or IPv6 block, address/bits, or a list of 1 to ${MAX_BLOCKS}`,
        test(value: string | readonly string[]) {
            const ranges = (blocksOf(value) ?? []).map(addressRange);
            return (found) => ranges.some((range) => found.hasAddressIn(range));
        },
    },
    '<': ordered('least', (order) => order < 0),
    '≤': ordered('least', (order) => order <= 0),
    '>': ordered('greatest', (order) => order > 0),
    '≥': ordered('greatest', (order) => order >= 0),
    exists: {
        accept: (value = true) => (typeof value === 'boolean' ? value : undefined),
        rule: 'must be true or false',
        test: () => (found) => found.values.some((value) => value !== null),
        inverted: (value) => value === false,
    },
};

/** Other spellings of the operators, for keyboards that lack their characters. */
const SPELLINGS: ReadonlyMap<unknown, FilterOp> = new Map([
    ...FILTER_OPS.map((op) => [op, op] as const),
    ['!=', '≠'],
    ['<=', '≤'],
    ['>=', '≥'],
]);

/**
 * An operator that compares numbers with numbers and times with times. Between a number and a time it never holds.
 *
 * @param end Which of the values to ask: if it does not hold for that one, then for none.
 */
function ordered(end: keyof Range, holds: (order: number) => boolean): Operator {
    return {
        accept: (value) => (typeof value === 'string' ? timeOf(value) : isScalar(value) && typeof value === 'number' ? value : undefined),
        rule: 'must be a number or an ISO 8601 time with a zone',
        test(value: string | number) {
            if (typeof value === 'number') {
                return ({ numbers }) => holds(numbers[end] - value);
            }

            const instant = Date.parse(value);
            return ({ times }) => holds(times[end] - instant);
        },
    };
}

function timeOf(text: string): string | undefined {
    const { error, value } = timestamp().validate(text);
    return error === undefined ? value : undefined;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_TEXT;

const isScalar = (value: unknown): value is Scalar =>
    value === null || typeof value === 'boolean' || Number.isFinite(value) || isText(value);

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value) && value.length > 0 && value.length <= MAX_LIST;

function blocksOf(value: unknown): readonly Block[] | undefined {
    const texts: readonly unknown[] = isList(value) ? value : [value];
    const blocks = texts.map((text) => (isText(text) ? parseBlock(text) : null)).filter((block) => block !== null);
    const areAll = blocks.length === texts.length && blocks.length <= MAX_BLOCKS;
    return areAll && blocks.every(([network]) => unmapped(network) === network) ? blocks : undefined;
}

/**
 * The filter as it is kept: operators in their one spelling, times in UTC.
 *
 * @param kinds The kinds that the filter will see. A path that none of them has is refused.
 * @throws ScanwireError `INVALID_INPUT` with the field, for example `filter.all[0].path`.
 */
export function checkFilter(filter: unknown, kinds: readonly EventKind[]): Filter {
    let conditions = 0;

    function checkedPart(given: unknown, at: string, depth: number): Filter {
        if (!isObject(given)) {
            throw refused(at, 'must be an object');
        }

        if (depth > MAX_DEPTH) {
            throw refused('filter', `must be at most ${MAX_DEPTH} levels deep`);
        }

        const [word, ...others] = Object.keys(given);
        if (word !== 'all' && word !== 'any' && word !== 'not') {
            conditions += 1;
            return conditions > MAX_CONDITIONS ? limitOf('filter') : checkedCondition(given, at, kinds);
        }

        if (others.length > 0) {
            throw refused(at, `must have nothing beside ${word}`);
        }

        if (word === 'not') {
            return { not: checkedPart(given.not, `${at}.not`, depth + 1) };
        }

        const list = given[word];
        if (!Array.isArray(list) || list.length === 0 || list.length > MAX_CONDITIONS) {
            throw refused(`${at}.${word}`, `must be a list of 1 to ${MAX_CONDITIONS} filters`);
        }

        const parts = list.map((item, index) => checkedPart(item, `${at}.${word}[${index}]`, depth + 1));
        return word === 'all' ? { all: parts } : { any: parts };
    }

    const checked = checkedPart(filter, 'filter', 1);
    const text = JSON.stringify(checked);
    if (text.length > MAX_SIZE) {
        throw refused('filter', `must have at most ${MAX_SIZE} characters`);
    }

    if (!isStorable(text)) {
        throw refused('filter', UNSTORABLE);
    }

    return checked;
}

function limitOf(field: string): never {
    throw refused(field, `must have at most ${MAX_CONDITIONS} conditions`);
}

function checkedCondition(
    { path, op, value, ...others }: Readonly<Record<string, unknown>>,
    at: string,
    kinds: readonly EventKind[],
): Condition {
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
        throw refused(at, `must have path, op and value, or one of all, any and not; it has ${unknown.slice(0, 64)}`);
    }

    if (typeof path !== 'string' || path.length > MAX_PATH || path.split('.').includes('') || path.split('.').length > MAX_KEYS) {
        throw refused(`${at}.path`, `must be 1 to ${MAX_KEYS} keys with dots between them, ${MAX_PATH} characters in all`);
    }

    if (!kinds.some((kind) => knows(describedBody(kind), path.split('.')))) {
        const names = kinds.map(({ name }) => name).join(', ');
        throw refused(`${at}.path`, `leads to nothing: no event kind of this exporter (${names}) has ${path}`);
    }

    const name = SPELLINGS.get(op);
    if (name === undefined) {
        throw refused(`${at}.op`, `must be one of ${FILTER_OPS.join(' ')}`);
    }

    const accepted = OPERATORS[name].accept(value);
    if (accepted === undefined) {
        throw refused(`${at}.value`, OPERATORS[name].rule);
    }

    return { path, op: name, value: accepted };
}

/** Types of which nothing is said about what is below. */
const OPEN_TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'any', 'alternatives', 'link']);

/** Whether a value of the description can have something at the path. Where the description leaves the type open, any path is possible. */
function knows(description: SchemaDescription, [key, ...below]: readonly string[]): boolean {
    const { type, keys, items, flags, patterns } = description;
    if (
        key === undefined ||
        (items === undefined && keys === undefined && (OPEN_TYPES.has(type) || type === 'object' || type === 'array'))
    ) {
        return true;
    }

    if (items !== undefined) {
        return items.some((item) => knows(item, [key, ...below]));
    }

    const known = keys !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined;
    return known === undefined ? flags?.unknown === true || patterns !== undefined : knows(known, below);
}

function refused(field: string, rule: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `${field[0]?.toUpperCase()}${field.slice(1)} ${rule}`, { field });
}

/** Says of a body, parsed from JSON, whether it is wanted. It never throws, whatever the body. */
export type CompiledFilter = (body: unknown) => boolean;

/** @param filter As {@link checkFilter} has given it. */
export function compileFilter(filter: Filter): CompiledFilter {
    return compilePart(filter, textSearch(soughtTexts(filter)));
}

/** What `contains` looks for in all of a filter. */
function soughtTexts(filter: Filter): readonly string[] {
    if ('op' in filter) {
        return filter.op === 'contains' ? [filter.value as string] : [];
    }

    return ('not' in filter ? [filter.not] : 'all' in filter ? filter.all : filter.any).flatMap(soughtTexts);
}

/** @param search For the texts of the whole filter. */
function compilePart(filter: Filter, search: TextSearch): CompiledFilter {
    if ('all' in filter) {
        const parts = filter.all.map((part) => compilePart(part, search));
        return (body) => parts.every((holds) => holds(body));
    }

    if ('any' in filter) {
        const parts = filter.any.map((part) => compilePart(part, search));
        return (body) => parts.some((holds) => holds(body));
    }

    if ('not' in filter) {
        const holds = compilePart(filter.not, search);
        return (body) => !holds(body);
    }

    const { path, op, value } = filter;
    const { test, inverted } = OPERATORS[op];
    const matches = test(value as never, search);
    const unwanted = inverted?.(value) ?? false;
    return (body) => matches(foundValues(body, path)) !== unwanted;
}

/** A condition that is why a body is not wanted. */
export interface FailedCondition {
    /** Where it stands, for example `filter.all[1]`. */
    readonly field: string;
    /** As text, for example `title contains "x"`. */
    readonly condition: string;
    /** What the condition was for this body, where the opposite was needed. True only under a `not`. */
    readonly holds: boolean;
    /** How many values the path led to. */
    readonly found: number;
}

/** Every condition because of which a filter does not let a body pass; none when it lets the body pass. Values of the body are not part of the result. */
export function failedConditions(filter: Filter, body: unknown): readonly FailedCondition[] {
    const search = textSearch(soughtTexts(filter));

    function failuresOf(part: Filter, field: string, wanted: boolean): readonly FailedCondition[] {
        const holds = compilePart(part, search)(body);
        if (holds === wanted) {
            return [];
        }

        if ('not' in part) {
            return failuresOf(part.not, `${field}.not`, !wanted);
        }

        if ('all' in part || 'any' in part) {
            const [word, parts] = 'all' in part ? ['all', part.all] : ['any', part.any];
            return parts.flatMap((one, index) => failuresOf(one, `${field}.${word}[${index}]`, wanted));
        }

        const { path, op, value } = part;
        const found = foundValues(body, path).values.length;
        return [{ field, condition: `${path} ${op} ${JSON.stringify(value)}`, holds, found }];
    }

    return failuresOf(filter, 'filter', true);
}
