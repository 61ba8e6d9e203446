import { createRequire } from 'node:module';
import type { Context, Liquid, Template } from 'liquidjs';
import { ScanwireError } from '../../errors.ts';
import { fieldPath, isObject, isStorable, UNSTORABLE } from '../../schema-validation.ts';
import { boundFilters, boundOperators } from './bounded-filters.ts';
import type { Format, FormatEvent } from './format.ts';
import { writtenTime } from './written-time.ts';

/*
 * A JSON document of the user's whose texts hold Liquid. What comes out is JSON whatever the texts make of an event, for they are
 * filled in as values. Liquid knows no code; what could make one event's message differ from one call to the next is taken out.
 */

const MAX_TEMPLATE = 65_536;
const MAX_DEPTH = 20;
const MAX_TEXTS = 500;
const MAX_OUTPUT = 1_048_576;
/** Maximum number of parts that are filled in; in a loop a part counts in every round. Unlike a time limit, it is the same on every machine, however busy. */
const MAX_STEPS = 50_000;
/** Maximum number of characters and items that filters, ranges and captures produce. */
const MAX_ALLOCATED = 2_000_000;
/** Maximum milliseconds of CPU, for templates of few steps that take long. */
const MAX_TIME = 250;

/** Tags that are removed, since there are no files to include. */
const FILE_TAGS = ['include', 'render', 'layout', 'block'];
/** What Liquid takes for seconds of the epoch. */
const SECONDS = /^\d+$/;
const DATE_FILTERS = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'];

/** A document of the user's. */
export const template: Format = {
    name: 'template',
    contentType: 'application/json; charset=UTF-8',
    checkTemplate: (document) => void documentOf(document),
    make: (event, settings) => ({ body: JSON.stringify(documentOf(settings.template)(new Filling(event))) }),
};

/** A part of a document, ready to be filled in. */
type Part = (filling: Filling) => unknown;

/** An event that a document is being filled in with, and what the document may still use. */
class Filling {
    readonly #event: FormatEvent;
    #output = MAX_OUTPUT;
    #steps = MAX_STEPS;
    #allocated = MAX_ALLOCATED;
    /** When the clock is looked at next, and the CPU time at the beginning. Both are needed only for templates that take long. */
    #next = 0;
    #begin: NodeJS.CpuUsage | undefined;
    readonly #limits = {
        memoryLimit: { use: (count: number) => this.#allocate(count) } as Limiter,
        renderLimit: { check: (now: number) => this.#step(now) } as Limiter,
    };
    #shared: Context | undefined;
    /** The event's body as {@link withTexts} makes it, made once: it may be large, and the texts many. */
    #body: { readonly value: unknown } | undefined;
    /** The limit that was exceeded; null as long as none was. */
    exceeded: string | null = null;

    constructor(event: FormatEvent) {
        this.#event = event;
    }

    /** @param apart Whether the text may assign variables that the next text must not see. */
    context(apart: boolean): Context {
        if (!apart && this.#shared !== undefined) {
            return this.#shared;
        }

        const { liquid, Context } = engine();
        const { kind, id, time, body: given } = this.#event;
        this.#body ??= { value: withTexts(given) };
        const { value: body } = this.#body;
        const context = new Context(
            { kind, id, time: time.toISOString(), body },
            liquid.options,
            { sync: true },
            { ...this.#limits, liquid },
        );
        this.#shared = apart ? this.#shared : context;
        return context;
    }

    /** Counts a text by its length alone, so that a text that is far too long is never put together. */
    take(text: string): string {
        this.#output -= text.length;
        return this.#output < 0 ? this.#exceed(`${MAX_OUTPUT} characters come out`) : text;
    }

    #allocate(count: number): void {
        // a value that is no number produces nothing
        if (count > 0) {
            this.#allocated -= count;
        }

        if (this.#allocated < 0) {
            this.#exceed(`${MAX_ALLOCATED} characters and items are made on the way`);
        }
    }

    #step(now: number): void {
        this.#steps -= 1;
        if (this.#steps < 0) {
            this.#exceed(`${MAX_STEPS} parts are filled in`);
        }

        if (this.#next === 0) {
            this.#next = now + MAX_TIME;
        } else if (now > this.#next) {
            this.#next = now + MAX_TIME;
            this.#spend();
        }
    }

    /** Measures CPU time: a clock would blame a template for what others do on a busy machine. */
    #spend(): void {
        const { user, system } = process.cpuUsage(this.#begin);
        if (this.#begin !== undefined && user + system > MAX_TIME * 1000) {
            this.#exceed(`${MAX_TIME} ms are needed`);
        }

        this.#begin ??= { user, system };
    }

    #exceed(what: string): never {
        this.exceeded = `more than ${what}`;
        throw new Error(this.exceeded);
    }
}

/**
 * The event with objects that can all be written as texts. An object with a key `toString` or `valueOf`, which is no function in JSON, could not
 * be. Without this, whoever writes the body could keep the message from being made.
 */
function withTexts(value: unknown): unknown {
    return lacksText(value) ? copyWithTexts(value) : value;
}

function lacksText(value: unknown): boolean {
    return (
        typeof value === 'object' &&
        value !== null &&
        (Object.hasOwn(value, 'toString') || Object.hasOwn(value, 'valueOf') || Object.values(value).some(lacksText))
    );
}

function copyWithTexts(value: unknown): unknown {
    if (Array.isArray(value)) {
        return value.map(copyWithTexts);
    }
    if (!isObject(value)) {
        return value;
    }
    const copy = Object.fromEntries(Object.entries(value).map(([key, below]) => [key, copyWithTexts(below)]));
    return Object.defineProperty(copy, Symbol.toPrimitive, { value: () => '[object Object]' });
}

/** Parsed documents. Parsing costs much more than filling in, so each document is parsed once, for as long as somebody holds it. */
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
    const size = new Size();
    const part = partOf(document, [], size);
    const text = JSON.stringify(document);
    size.assertWithin(text.length);

    if (!isStorable(text)) {
        throw refused(`Template ${UNSTORABLE}`, []);
    }

    return part;
}

/** How large the part of a document is that has been looked at: what is too large is refused before more of it is parsed, which takes far longer than to count it. */
class Size {
    #texts = 0;
    #characters = 0;

    /** @param length Of a key, or of a value as JSON, at least. */
    add(length: number): void {
        this.#characters += length;
        this.assertWithin(this.#characters);
    }

    addLiquid(): void {
        this.#texts += 1;
        if (this.#texts > MAX_TEXTS) {
            throw refused(`Template must have at most ${MAX_TEXTS} texts with Liquid`, []);
        }
    }

    assertWithin(characters: number): void {
        if (characters > MAX_TEMPLATE) {
            throw refused(`Template must have at most ${MAX_TEMPLATE} characters`, []);
        }
    }
}

type Limiter = Context['memoryLimit'];

type Path = readonly (string | number)[];

function partOf(value: unknown, path: Path, size: Size): Part {
    size.add(typeof value === 'string' ? value.length : 1);
    if (path.length > MAX_DEPTH) {
        throw refused(`Template must be at most ${MAX_DEPTH} levels deep`, []);
    }

    if (typeof value === 'string') {
        return value.includes('{{') || value.includes('{%') ? liquidText(value, path, size) : () => value;
    }

    if (Array.isArray(value)) {
        const parts = value.map((item, index) => partOf(item, [...path, index], size));
        return (filling) => parts.map((part) => part(filling));
    }

    if (isObject(value)) {
        const parts = Object.entries(value).map(([key, below]) => {
            size.add(key.length);
            return [key, partOf(below, [...path, key], size)] as const;
        });
        return (filling) => Object.fromEntries(parts.map(([key, part]) => [key, part(filling)]));
    }

    if (value !== null && typeof value !== 'boolean' && !Number.isFinite(value)) {
        throw refused(`Template ${fieldPath(path)} must be JSON`, path);
    }

    return () => value;
}

function liquidText(text: string, path: Path, size: Size): Part {
    size.addLiquid();
    const parsed = parsedText(text, path);
    const hasTags = text.includes('{%');
    return (filling) => {
        try {
            return filling.take(String(engine().liquid.renderSync(parsed, filling.context(hasTags))));
        } catch (cause) {
            // Liquid's message may repeat text of the event.
            const why = `Template ${fieldPath(path)} cannot be filled in: ${filling.exceeded ?? 'Liquid refuses it for this event'}`;
            throw new ScanwireError('MISCONFIGURED', why, { field: 'template', cause });
        }
    };
}

function parsedText(text: string, path: Path): Template[] {
    try {
        return engine().liquid.parse(text);
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

type Module = typeof import('liquidjs');

interface Engine extends Pick<Module, 'Context'> {
    readonly liquid: Liquid;
}

let loaded: Engine | undefined;

/** The template engine, loaded for the first template, since most deployments have none. */
function engine(): Engine {
    loaded ??= newEngine(createRequire(import.meta.url)('liquidjs') as Module);
    return loaded;
}

function newEngine({ CaptureTag, Context, Liquid, defaultOperators }: Module): Engine {
    const liquid = new Liquid({
        strictFilters: true,
        ownPropertyOnly: true,
        dynamicPartials: false,
        templates: {},
        locale: 'en-US',
        timezoneOffset: 0,
        parseLimit: MAX_TEMPLATE,
        operators: boundOperators({ defaultOperators }),
    });
    for (const tag of FILE_TAGS) {
        delete liquid.tags[tag];
    }

    liquid.registerTag('capture', countedCapture(CaptureTag));
    liquid.unregisterFilter('sample');
    boundFilters(liquid);
    for (const name of DATE_FILTERS) {
        liquid.registerFilter(name, datedFilter(liquid.filters[name] as DateFilter));
    }

    return { liquid, Context };
}

/** Counts what a capture holds. Otherwise a capture that doubles itself again and again would be bounded only by the memory of the process. */
function countedCapture(CaptureTag: Module['CaptureTag']): Module['CaptureTag'] {
    return class extends CaptureTag {
        override *render(context: Context): Generator<unknown, void, string> {
            yield* super.render(context);
            context.memoryLimit.use(String(Reflect.get(context.bottom(), this.variable)).length);
        }
    };
}

type DateFilter = (this: { readonly context: Context }, value: unknown, ...rest: unknown[]) => unknown;

/**
 * A date filter for which `now` is the event's time, and a time without a zone is in UTC: the clock's time would differ in every call, and the zone
 * of the machine from one to the next. What is no time comes out as it is.
 */
function datedFilter(filter: DateFilter): DateFilter {
    return function (value, ...rest) {
        const text = Array.isArray(value) ? String(value) : value;
        if (text === 'now' || text === 'today') {
            return filter.call(this, Reflect.get(this.context.environments, 'time'), ...rest);
        }
        if (typeof text !== 'string' || SECONDS.test(text)) {
            return filter.call(this, value, ...rest);
        }

        const time = writtenTime(text);
        return time === null ? value : filter.call(this, time, ...rest);
    };
}
