import { createRequire } from 'node:module';
import type { Context, Liquid, Template } from 'liquidjs';
import { fieldPath, isObject } from '../../checked.ts';
import { ScanwireError } from '../../errors.ts';
import type { Format, FormatEvent } from './format.ts';

/*
 * A JSON document of the user's whose texts hold Liquid. What comes out is JSON whatever the texts make of an event, for they are
 * filled in as values. Liquid knows no code; what could make one event's message differ from one call to the next is taken out.
 */

const MAX_TEMPLATE = 65_536;
const MAX_DEPTH = 20;
const MAX_TEXTS = 500;
const MAX_OUTPUT = 1_048_576;
/** Milliseconds for a whole document. The other limits end nearly everything before it, and on every machine at the same place. */
const MAX_TIME = 50;
/** Characters and items that the filters, ranges and captures of one text may make. */
const MAX_ALLOCATED = 2_000_000;

/** Removed, for there are no files to include. */
const FILE_TAGS = ['include', 'render', 'layout', 'block'];
const DATE_FILTERS = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'];

/** A document of the user's. */
export const template: Format = {
    name: 'template',
    contentType: 'application/json; charset=UTF-8',
    checkTemplate: (document) => void documentOf(document),
    make: (event, settings) => ({ body: JSON.stringify(documentOf(settings.template)(event, new Budget())) }),
};

/** A part of a document, ready to be filled in. */
type Part = (event: FormatEvent, budget: Budget) => unknown;

/** What is left for a document that is being filled in. */
class Budget {
    #output = MAX_OUTPUT;
    readonly #end = performance.now() + MAX_TIME;

    /** Milliseconds. */
    get time(): number {
        return Math.max(this.#end - performance.now(), 0);
    }

    /** Counts a text, by its length alone: one that is much too long is never put together. */
    take(text: string): string {
        this.#output -= text.length;
        if (this.#output < 0) {
            throw new Error(`more than ${MAX_OUTPUT} characters`);
        }

        return text;
    }
}

/** Parsing costs much more than filling in: each document is parsed once, as long as somebody holds it. */
const documents = new WeakMap<object, Part>();

function documentOf(document: unknown): Part {
    if (typeof document !== 'object' || document === null) {
        throw refused('Template must be a JSON object or list', []);
    }

    const part = documents.get(document) ?? checkedDocument(document);
    documents.set(document, part);
    return part;
}

function checkedDocument(document: object): Part {
    let texts = 0;
    const part = partOf(document, [], () => {
        texts += 1;
        return texts <= MAX_TEXTS;
    });
    if (JSON.stringify(document).length > MAX_TEMPLATE) {
        throw refused(`Template must have at most ${MAX_TEMPLATE} characters`, []);
    }

    return part;
}

type Path = readonly (string | number)[];

function partOf(value: unknown, path: Path, another: () => boolean): Part {
    if (path.length > MAX_DEPTH) {
        throw refused(`Template must be at most ${MAX_DEPTH} levels deep`, []);
    }

    if (typeof value === 'string') {
        return value.includes('{{') || value.includes('{%') ? liquidText(value, path, another) : () => value;
    }

    if (Array.isArray(value)) {
        const parts = value.map((item, index) => partOf(item, [...path, index], another));
        return (event, budget) => parts.map((part) => part(event, budget));
    }

    if (isObject(value)) {
        const parts = Object.entries(value).map(([key, below]) => [key, partOf(below, [...path, key], another)] as const);
        return (event, budget) => Object.fromEntries(parts.map(([key, part]) => [key, part(event, budget)]));
    }

    if (value !== null && typeof value !== 'boolean' && !Number.isFinite(value)) {
        throw refused(`Template ${fieldPath(path)} must be JSON`, path);
    }

    return () => value;
}

function liquidText(text: string, path: Path, another: () => boolean): Part {
    if (!another() || text.length > MAX_TEMPLATE) {
        throw refused(`Template must have at most ${MAX_TEXTS} texts with Liquid, of ${MAX_TEMPLATE} characters`, []);
    }

    const parsed = parsedText(text, path);
    return ({ kind, id, time, body }, budget) => {
        try {
            const scope = { kind, id, time: time.toISOString(), body };
            const made: unknown = engine().renderSync([...parsed], scope, { renderLimit: budget.time, memoryLimit: MAX_ALLOCATED });
            return budget.take(String(made));
        } catch (cause) {
            const why = `Template ${fieldPath(path)} cannot be filled in: ${firstLine(cause)}`;
            throw new ScanwireError('MISCONFIGURED', why, { field: 'template', cause });
        }
    };
}

function parsedText(text: string, path: Path): readonly Template[] {
    try {
        return engine().parse(text);
    } catch (cause) {
        throw refused(`Template ${fieldPath(path)} is not Liquid: ${firstLine(cause)}`, path);
    }
}

function firstLine(error: unknown): string {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    return line.slice(0, 200);
}

function refused(message: string, path: Path): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field: fieldPath(['template', ...path]) });
}

let liquid: Liquid | undefined;

/** Loaded by the first template: most deployments have none. */
function engine(): Liquid {
    liquid ??= newEngine(createRequire(import.meta.url)('liquidjs') as typeof import('liquidjs'));
    return liquid;
}

function newEngine({ CaptureTag, Liquid }: typeof import('liquidjs')): Liquid {
    const made = new Liquid({
        strictFilters: true,
        ownPropertyOnly: true,
        dynamicPartials: false,
        templates: {},
        locale: 'en-US',
        timezoneOffset: 0,
        parseLimit: MAX_TEMPLATE,
    });
    for (const tag of FILE_TAGS) {
        delete made.tags[tag];
    }

    made.registerTag('capture', countedCapture(CaptureTag));
    made.unregisterFilter('sample');
    for (const name of DATE_FILTERS) {
        made.registerFilter(name, datedFilter(made.filters[name] as DateFilter));
    }

    return made;
}

/** Else a capture of itself, twice over and over, would be bounded by the memory of the process alone. */
function countedCapture(CaptureTag: typeof import('liquidjs').CaptureTag): typeof import('liquidjs').CaptureTag {
    return class extends CaptureTag {
        override *render(context: Context): Generator<unknown, void, string> {
            yield* super.render(context);
            context.memoryLimit.use(String(Reflect.get(context.bottom(), this.variable)).length);
        }
    };
}

type DateFilter = (this: { readonly context: Context }, value: unknown, ...rest: unknown[]) => unknown;

/** `now` is the event's time: the clock's would be another in every call. */
function datedFilter(filter: DateFilter): DateFilter {
    return function (value, ...rest) {
        const isNow = value === 'now' || value === 'today';
        return filter.call(this, isNow ? Reflect.get(this.context.environments, 'time') : value, ...rest);
    };
}
