import { Liquid } from 'liquidjs';
import { ScanwireError } from '../../../lib/errors.ts';
import { ICON } from '../../web-page.ts';
import type { FirstStep } from './first-steps.ts';
import { formToken } from './form-tokens.ts';
import { counted, errorText, type Forms, filled, type Texts } from './languages.ts';

/** A page as it is to be shown: a template of a screen and what it shows. */
export interface Page {
    readonly template: string;
    readonly title: string;
    readonly data: object;
    /** HTTP status, 200 unless it is there. */
    readonly status?: number;
}

/** Templates by their names. Whatever they show is escaped. */
export type Templates = Readonly<Record<string, string>>;

/** What every page shows around its own. */
export interface Frame {
    /** Path below which all pages are. */
    readonly base: string;
    /** The pages that can be chosen, by their paths below `base`. */
    readonly screens: readonly { readonly path: string; readonly title: string }[];
    /** Path below `base` of the page that is shown. */
    readonly path: string;
    /** Path of the page that signs out, null for none. */
    readonly signOut: string | null;
    /** Of the browser that asks; see `form-tokens.ts`. */
    readonly secret: string;
    readonly now: Date;
    readonly texts: Texts;
    /** What somebody new does next, and on another page; null for nothing. */
    readonly nextStep: FirstStep | null;
}

const LAYOUT = `<!DOCTYPE html>
<html lang="{{ t.locale }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content='{"includeIndicatorCSS":false,"mode":"same-origin"}'>
<title>{{ title }} · {{ t.product }}</title>
${ICON}
<link rel="stylesheet" href="{{ base }}/assets/pico.css">
<link rel="stylesheet" href="{{ base }}/assets/screens.css">
<script src="{{ base }}/assets/htmx.js" defer></script>
<script src="{{ base }}/assets/screens.js" defer></script>
</head>
<body hx-boost:inherited="true">
<header>
<a class="skip" href="#content">{{ t.skip }}</a>
<nav aria-label="{{ t.navigation }}">
<ul><li><strong>{{ t.product }}</strong></li></ul>
<ul>
{% for screen in screens %}<li><a href="{{ base }}{{ screen.path }}"{% if here == screen.path %} aria-current="page"{% endif %}>{{ screen.title }}</a></li>
{% endfor %}{% if signOut %}<li><a href="{{ signOut }}" hx-boost="false">{{ t.signOut }}</a></li>{% endif %}</ul>
</nav>
<p id="away" role="alert" class="fault" hidden>{{ t.away }}</p>
</header>
<main id="content" tabindex="-1">
<h1>{{ title }}</h1>
{% if nextStep %}<p class="next"><strong>{{ t.overview.next }}</strong> <a href="{{ base }}{{ nextStep.to }}">{{ nextStep.text }}</a></p>{% endif %}
{% block content %}{% endblock %}
</main>
</body>
</html>
`;

const PARTS: Templates = {
    layout: LAYOUT,
    /** Begins a form that goes to `action`, a path below the base. */
    form: `<form method="post" action="{{ base }}{{ action }}"{% if name %} aria-label="{{ name }}"{% endif %}>
<input type="hidden" name="formToken" value="{{ action | token }}">
`,
    time: `{% if at %}<time datetime="{{ at | iso }}" title="{{ at | utc }}">{{ at | relative }}</time>{% else %}{{ t.never }}{% endif %}`,
    /** With scripts, loads the part of the page again in which it stands, until that has it no more: at times, or when an event says so. */
    follow: `<span hx-get="{{ base }}{{ path }}" hx-trigger="{% if when %}{{ when }}{% else %}every {{ every | default: '1s' }}{% endif %}" hx-target="{{ part }}" hx-select="{{ part }}" hx-swap="outerMorph"></span>`,
    /** What is said of a field: what is wrong with it, else what it is. */
    said: `{% assign fault = error | fault: field %}{% if fault %}<small id="{{ field }}-said" class="fault">{{ fault }}</small>{% elsif again %}<small id="{{ field }}-said" class="fault">{{ t.again }}</small>{% elsif hint %}<small id="{{ field }}-said">{{ hint }}</small>{% endif %}`,
    /** How a field is called, and whether it must have something in it. */
    label: `{{ label }}{% if required %} <small>({{ t.required }})</small>{% endif %}`,
    input: `<label>{% render 'label', label: label, required: required %}
<input{% if id %} id="{{ id }}"{% endif %} name="{{ field }}" type="{{ type | default: 'text' }}" value="{{ value }}"{% if required %} required{% endif %}{% if list %} list="{{ list }}"{% endif %} autocomplete="off" spellcheck="false" {% render 'state', field: field, hint: hint, again: again, error: error %}>
{% render 'said', field: field, hint: hint, again: again, error: error %}</label>
`,
    text: `<label>{% render 'label', label: label, required: required %}
<textarea name="{{ field }}" rows="{{ rows | default: 3 }}"{% if required %} required{% endif %} autocomplete="off" spellcheck="false" {% render 'state', field: field, hint: hint, again: again, error: error %}>
{{ value }}</textarea>
{% render 'said', field: field, hint: hint, again: again, error: error %}</label>
`,
    /** A field of any kind. `choices` are pairs of a value and its text. */
    control: `{% case as %}
{% when 'flag' %}<label><input type="checkbox" name="{{ field }}"{% if value != '' %} checked{% endif %}> {{ label }}</label>
{% render 'said', field: field, hint: hint, error: error %}
{% when 'choice' %}<label>{{ label }} <select name="{{ field }}" {% render 'state', field: field, hint: hint, error: error %}>{% for choice in choices %}<option value="{{ choice[0] }}"{% if choice[0] == value %} selected{% endif %}>{{ choice[1] }}</option>{% endfor %}</select>
{% render 'said', field: field, hint: hint, error: error %}</label>
{% when 'choices' %}<fieldset><legend>{{ label }}</legend>
{% for choice in choices %}<label><input type="checkbox" name="{{ field }}" value="{{ choice[0] }}"{% if value contains choice[0] %} checked{% endif %}> {{ choice[1] }}</label>
{% endfor %}{% render 'said', field: field, hint: hint, error: error %}</fieldset>
{% when 'lines' %}{% render 'text', field: field, label: label, value: value, hint: hint, again: again, error: error %}
{% else %}{% render 'input', field: field, type: as, label: label, value: value, hint: hint, again: again, error: error %}
{% endcase %}`,
    /** With scripts, copies what the element of an id holds. */
    copy: `<button type="button" class="outline" hidden data-copy="{{ id }}" data-copied="{{ t.copied }}">{{ t.copy }}</button>
`,
    state: `{% assign fault = error | fault: field %}{% if fault %}aria-invalid="true"{% endif %}{% if fault or again or hint %} aria-describedby="{{ field }}-said"{% endif %}`,
    /** What an outcome means and what to do about it. */
    'outcome-words': `{% if words %}<p class="words"><small>{{ words.meaning }}. {{ words.advice }}.</small></p>{% endif %}`,
    error: `{% if error %}<p role="alert" class="fault">{{ error.message }}</p>{% endif %}`,
    refusal: `{% layout 'layout' %}{% block content %}<p role="alert">{{ message }}</p>{% if back %}<p><a href="{{ back }}">{{ t.refusals.back }}</a></p>{% endif %}{% endblock %}`,
};

/** A refusal as forms show it: beside the field that is at fault. */
export interface Fault {
    readonly field?: string | undefined;
    readonly message: string;
}

/** What the form has to say of an error; one that is not about what was typed is shown as a page. */
export function faultOf(error: unknown, texts: Texts): { error: Fault; status: number } {
    if (error instanceof ScanwireError && (error.code === 'INVALID_INPUT' || error.code === 'CONFLICT')) {
        return { error: { field: error.field, message: errorText(error, texts) }, status: error.code === 'CONFLICT' ? 409 : 400 };
    }

    throw error;
}

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
    ['year', 31_536_000],
    ['month', 2_592_000],
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
    ['second', 1],
];

/** What a part, or a page, may be given or not. */
const OPTIONAL = Object.fromEntries(
    [
        'again',
        'back',
        'error',
        'every',
        'hint',
        'id',
        'list',
        'name',
        'names',
        'notice',
        'required',
        'rows',
        'shown',
        'type',
        'typeHint',
        'when',
    ].map((name) => [name, null]),
);

/** What can be chosen. */
interface Option {
    readonly id: string;
    readonly name: string;
}

/** Of a list of a thousand the templates would take longer than for all else of the page; what comes out of it is escaped here. */
function optionOf({ id, name }: Option, chosen: string): string {
    return `<option value="${escaped(id)}"${id === chosen ? ' selected' : ''}>${escaped(name)}</option>`;
}

const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

function escaped(text: string): string {
    return text.replace(/[&<>"']/g, (character) => MARKUP[character] as string);
}

/** Writes pages. Strict: a template that names what is not there fails, it shows nothing wrong. */
export class Renderer {
    readonly #engine: Liquid;
    readonly #relative = new Map<string, Intl.RelativeTimeFormat>();

    constructor(templates: Templates) {
        this.#engine = new Liquid({
            templates: { ...PARTS, ...templates },
            outputEscape: 'escape',
            strictFilters: true,
            strictVariables: true,
            lenientIf: true,
            ownPropertyOnly: true,
            jsTruthy: true,
            cache: true,
        });
        const filters: Readonly<Record<string, (value: never, argument: never) => unknown>> = {
            iso: (at: string | Date) => new Date(at).toISOString(),
            fill: (text: string, value: string | number) => filled(text, [String(value)]),
            json: (value: unknown) => JSON.stringify(value),
            options: (all: readonly Option[], chosen: string) => all.map((one) => optionOf(one, chosen)).join(''),
            fault: (error: Fault | null, field: string) => (isAbout(error, field) ? error?.message : null),
        };
        for (const [name, filter] of Object.entries(filters)) {
            this.#engine.registerFilter(name, filter as (value: unknown) => unknown);
        }
        this.#registerGlobals();
    }

    /** The page in HTML. */
    async render({ template, title, data }: Pick<Page, 'template' | 'title' | 'data'>, frame: Frame): Promise<string> {
        const { base, screens, path, signOut, secret, now, nextStep, texts } = frame;
        const globals = { ...OPTIONAL, t: texts, base, frame: { secret, now } };
        return await this.#engine.renderFile(template, { ...data, title, screens, here: path, signOut, nextStep }, { globals });
    }

    /** Filters that look at the page. */
    #registerGlobals(): void {
        const engine = this.#engine;
        engine.registerFilter('token', function (action: string) {
            const { secret } = this.context.globals.frame as Frame;
            return formToken(secret, action);
        });
        engine.registerFilter('utc', function (at: string | Date) {
            const { units } = this.context.globals.t as Texts;
            return filled(units.utc, [new Date(at).toISOString().slice(0, 19).replace('T', ' ')]);
        });
        engine.registerFilter('counted', function (forms: Forms, count: number) {
            return counted(this.context.globals.t as Texts, forms, count);
        });
        const relativeIn = (locale: string): Intl.RelativeTimeFormat => this.#relativeIn(locale);
        engine.registerFilter('relative', function (at: string | Date) {
            const { now } = this.context.globals.frame as Frame;
            const seconds = Math.round((new Date(at).getTime() - now.getTime()) / 1000);
            const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
            return relativeIn((this.context.globals.t as Texts).locale).format(Math.trunc(seconds / length), unit);
        });
    }

    #relativeIn(locale: string): Intl.RelativeTimeFormat {
        const format = this.#relative.get(locale) ?? new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });
        this.#relative.set(locale, format);
        return format;
    }
}

/** `headers[0][1]` is about `headers`, `basic.username` about itself and `basic`. */
function isAbout(error: Fault | null, field: string): boolean {
    const at = error?.field ?? '';
    return at === field || at.startsWith(`${field}.`) || at.startsWith(`${field}[`);
}
