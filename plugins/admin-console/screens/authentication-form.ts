import { type AuthenticationPart, type AuthenticationSettings, OAUTH_METHODS } from '../../../lib/webhooks/exporters/authentication.ts';
import { FormFault, type Texts } from './languages.ts';
import type { Templates } from './renderer.ts';

/*
 * What an exporter authenticates by, in its form: a fold for each part. No page has what is there already: a part that is left empty stays,
 * one of which anything is typed is given again as a whole.
 */

const PARTS = `{% for part in parts %}{% assign words = t.exporters.authentications[part.name] %}{% assign fault = error | fault: part.name %}
<details class="part"{% if fault or part.isOpen %} open{% endif %}><summary>{{ words.title }}{% if part.isSet %}<span>, {{ t.exporters.isSet }}</span>{% endif %}</summary>
<fieldset aria-label="{{ words.title }}">{% render 'group-fault', part: part, error: error %}
{% if part.isSet %}<p>{{ t.exporters.partStays }}</p>
<label><input type="checkbox" name="drop" value="{{ part.name }}"{% if part.isDropped %} checked{% endif %}> {{ t.exporters.dropPart }}</label>{% endif %}
{% if part.isAgain %}{% render 'give-up', name: part.name, text: t.exporters.giveUpPart %}{% endif %}
{% for field in part.fields %}{% if field.isAgain %}{% render 'asked-again', name: field.path %}{% endif %}{% assign label = words[field.name][0] %}{% assign hint = words[field.name][1] %}
{% render 'control', field: field.path, as: field.as, value: field.value, choices: field.choices, label: label, hint: hint, again: field.isAgain, error: error %}{% endfor %}</fieldset></details>
{% endfor %}`;

/** What is wrong with a part as a whole; of a part that is one field, the field says it. */
const GROUP_FAULT = `{% if error.field == part.name and part.fields.size > 1 %}<small class="fault">{{ error.message }}</small>{% endif %}`;

/** That a secret is asked for again: a form without it is not taken for one that wants none, unless somebody says so. */
const ASKED_AGAIN = `<input type="hidden" name="again" value="{{ name }}">`;
const GIVE_UP = `<label><input type="checkbox" name="giveUp" value="{{ name }}"> {{ text }}</label>`;

/** The fields of a form for what an exporter authenticates by. */
export const authenticationTemplates: Templates = {
    'authentication-parts': PARTS,
    'group-fault': GROUP_FAULT,
    'asked-again': ASKED_AGAIN,
    'give-up': GIVE_UP,
};

interface Field {
    /** As the setting is called. */
    readonly name: string;
    readonly as: 'text' | 'password' | 'lines' | 'flag' | 'choice';
    /** Is not sent back to the browser that typed it either. */
    readonly isSecret?: true;
}

/** Of a part that is one text. */
const PEM = 'pem';

const FIELDS: { readonly [Part in AuthenticationPart]: readonly Field[] } = {
    basic: [
        { name: 'username', as: 'text' },
        { name: 'password', as: 'password', isSecret: true },
    ],
    oauth: [
        { name: 'tokenUrl', as: 'text' },
        { name: 'clientId', as: 'text' },
        { name: 'clientSecret', as: 'password', isSecret: true },
        { name: 'scope', as: 'text' },
        { name: 'audience', as: 'text' },
        { name: 'authMethod', as: 'choice' },
        { name: 'ca', as: 'lines' },
    ],
    clientCertificate: [
        { name: 'certificate', as: 'lines' },
        { name: 'key', as: 'lines', isSecret: true },
    ],
    ca: [{ name: PEM, as: 'lines' }],
    proxy: [
        // With a password in it.
        { name: 'url', as: 'text', isSecret: true },
        { name: 'resolvesNames', as: 'flag' },
        { name: 'ca', as: 'lines' },
    ],
};

const ORDER = Object.keys(FIELDS) as readonly AuthenticationPart[];

/** What was typed about authentication: texts by the paths of their settings, and the parts that are to be dropped. */
export interface TypedAuthentication {
    readonly texts: ReadonlyMap<string, string>;
    readonly dropped: readonly string[];
    /** Paths of secrets that the form asked for once more, which is missing of it. */
    readonly missing: readonly string[];
}

/** What was typed into the form. */
export function typedAuthentication(form: URLSearchParams): TypedAuthentication {
    const fields = ORDER.flatMap((part) => FIELDS[part].map((field) => [part, field] as const));
    const texts = fields.map(([part, field]) => [pathOf(part, field), form.get(pathOf(part, field)) ?? ''] as const);
    const givenUp = form.getAll('giveUp');
    const kept = new Map(texts.filter(([path, text]) => text.trim() !== '' && !givenUp.includes(partOf(path))));
    return { texts: kept, dropped: form.getAll('drop'), missing: missingIn(form) };
}

/** Fields that the form asks for again and that are empty, but for those of what is given up. */
export function missingIn(form: URLSearchParams): readonly string[] {
    const givenUp = form.getAll('giveUp');
    return form.getAll('again').filter((path) => (form.get(path) ?? '').trim() === '' && !givenUp.includes(partOf(path)));
}

/** `basic` of `basic.password`. */
function partOf(path: string): string {
    return path.split('.', 1)[0] as string;
}

/**
 * The settings that it comes to: a part of which anything was typed, null for one that is dropped; the others are absent.
 *
 * @throws ScanwireError `INVALID_INPUT` where a secret is missing that was asked for again.
 */
export function authenticationIn({ texts, dropped, missing }: TypedAuthentication): AuthenticationSettings {
    const [field] = missing;
    if (field !== undefined) {
        throw new FormFault(({ exporters }) => exporters.missing, { field });
    }

    const settings = ORDER.map((part) => {
        const given = FIELDS[part].flatMap((field) => givenOf(field, texts.get(pathOf(part, field))));
        return [part, given.length > 0 ? settingOf(part, Object.fromEntries(given)) : dropped.includes(part) ? null : undefined];
    });
    return Object.fromEntries(settings.filter(([, setting]) => setting !== undefined));
}

type Given = Readonly<Record<string, string | boolean>>;

function settingOf(part: AuthenticationPart, given: Given): Given | string | boolean | undefined {
    // Some receivers take a token for the user and no password, or the other way about.
    return part === 'ca' ? given[PEM] : part === 'basic' ? { username: '', password: '', ...given } : given;
}

function givenOf({ name, as }: Field, text: string | undefined): readonly (readonly [string, string | boolean])[] {
    return text === undefined ? [] : [[name, as === 'flag' ? true : text]];
}

function pathOf(part: string, { name }: Field): string {
    return name === PEM ? part : `${part}.${name}`;
}

/** What the form shows of each part. @param set The parts that the exporter has. */
export function shownParts(
    { texts, dropped, missing }: TypedAuthentication,
    set: readonly AuthenticationPart[],
    { exporters }: Texts,
): readonly object[] {
    // What is not chosen is the first one.
    const choices = OAUTH_METHODS.map((method, index) => [index === 0 ? '' : method, exporters.oauthMethods[method]]);
    return ORDER.map((name) => {
        const fields = FIELDS[name].map((field) => {
            const path = pathOf(name, field);
            const text = texts.get(path) ?? '';
            // A key is often in one file with its certificate.
            const isSecret = field.isSecret === true || text.includes('PRIVATE KEY-----');
            return {
                ...field,
                path,
                value: isSecret ? '' : text,
                isAgain: missing.includes(path) || (isSecret && text !== ''),
                choices,
            };
        });
        const isDropped = dropped.includes(name);
        const isAgain = fields.some((field) => field.isAgain);
        const isOpen = isDropped || isAgain || fields.some(({ path }) => texts.has(path));
        return { name, fields, isSet: set.includes(name), isDropped, isAgain, isOpen };
    });
}
