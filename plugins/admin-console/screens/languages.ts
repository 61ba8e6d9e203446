import { ScanwireError } from '../../../lib/errors.ts';
import { type FindingWords, filled, filledFinding } from '../../../lib/webhooks/observing/doctor-words.ts';
import type { Finding } from '../../../lib/webhooks/observing/finding.ts';
import type { OutcomeCode } from '../../../lib/webhooks/outcomes/outcome.ts';
import { type OutcomeWords, outcomeWords } from '../../../lib/webhooks/outcomes/outcome-words.ts';
import { texts as english } from './texts.ts';

export { filled };

/** A text of a number in its forms, by the names that `Intl.PluralRules` has for them. */
export type Forms = { readonly one: string; readonly other: string } & Readonly<Partial<Record<'zero' | 'two' | 'few' | 'many', string>>>;

/** A tree of texts with the keys of the English one: a language of the pages. */
export type Texts = Widened<typeof english>;

type Widened<T> = T extends { readonly one: string; readonly other: string }
    ? Forms
    : { readonly [Key in keyof T]: T[Key] extends string ? string : Widened<T[Key]> };

/**
 * The languages that the pages have: those that are given, the first one for who wants none of them, else English.
 *
 * @throws ScanwireError `MISCONFIGURED` with the text that is missing.
 */
export function languagesOf(given: Texts | readonly Texts[] = english): readonly [Texts, ...Texts[]] {
    const [first = english, ...others] = [given].flat();
    const languages = [first, ...others] as const;
    languages.forEach((language, index) => {
        assertTexts(language, english, Array.isArray(given) ? `screens.texts[${index}]` : 'screens.texts');
    });
    return [...languages];
}

function assertTexts(given: unknown, form: unknown, field: string): void {
    if (typeof form === 'object' && form !== null) {
        for (const [key, part] of Object.entries(form)) {
            const own =
                typeof given === 'object' && given !== null && Object.hasOwn(given, key)
                    ? (given as Record<string, unknown>)[key]
                    : undefined;
            assertTexts(own, part, `${field}.${key}`);
        }
    } else if (typeof given !== 'string' && !(form === null && given === null)) {
        throw new ScanwireError('MISCONFIGURED', `admin-console options: ${field} must be a text`, { field });
    } else if (field.endsWith('.locale') && !isLocale(given)) {
        throw new ScanwireError('MISCONFIGURED', `admin-console options: ${field} must be the name of a language, such as pt-BR`, {
            field,
        });
    }
}

function isLocale(given: unknown): boolean {
    try {
        return Intl.getCanonicalLocales(given as string).length === 1;
    } catch {
        return false;
    }
}

/** The language that a browser wants most of those that there are. @param wanted Its header `Accept-Language`. */
export function languageFor(languages: readonly [Texts, ...Texts[]], wanted = ''): Texts {
    const ranges = wanted
        .split(',')
        .map((range) => range.split(';').map((part) => part.trim().toLowerCase()))
        .map(([range = '', quality]) => ({ range, quality: quality?.startsWith('q=') === true ? Number(quality.slice(2)) : 1 }))
        .filter(({ range, quality }) => range !== '' && quality > 0)
        .sort((one, other) => other.quality - one.quality);
    for (const { range } of ranges) {
        const fitting = range === '*' ? languages[0] : languages.find(({ locale }) => isMeant(range, locale.toLowerCase()));
        if (fitting !== undefined) {
            return fitting;
        }
    }
    return languages[0];
}

/** `de` is meant by `de-AT`, and the other way about. */
function isMeant(range: string, locale: string): boolean {
    return range === locale || range.startsWith(`${locale}-`) || locale.startsWith(`${range}-`);
}

/** What is wrong with a field of a form, which the page itself says, in its language. */
export class FormFault extends ScanwireError {
    readonly says: (texts: Texts) => string;

    constructor(says: (texts: Texts) => string, details: { readonly field?: string; readonly cause?: unknown } = {}) {
        super('INVALID_INPUT', says(english), details);
        this.says = says;
    }
}

/** What pages say of an error. */
export function errorText(error: ScanwireError, texts: Texts): string {
    return error instanceof FormFault ? error.says(texts) : filled(texts.said.errors[error.code], [error.message]);
}

/** A finding as pages say it. */
export function findingShown({ code, values = [], text, advice }: Finding, { findings, said }: Texts): Pick<Finding, 'text' | 'advice'> {
    // One of a doctor of the application may have a code of a newer version.
    const words: FindingWords | null = code !== undefined && Object.hasOwn(findings, code) ? findings[code] : null;
    return words === null
        ? { text: filled(said.finding, [text]), advice: advice === null ? null : filled(said.finding, [advice]) }
        : filledFinding(
              words,
              values.map((value) => (Object.hasOwn(said.names, value) ? said.names[value as keyof typeof said.names] : value)),
          );
}

/**
 * What an outcome that wants somebody is in words; null for one that does not, and for one of a newer version.
 *
 * @param status Of the answer, where one came and is known.
 */
export function wordsOf(texts: Texts, code: OutcomeCode | null | undefined, status: number | null = null): OutcomeWords | null {
    const words: OutcomeWords | undefined = code == null ? undefined : outcomeWords(code, status, texts);
    return words?.advice == null ? null : words;
}

/** A number, `10,000+` where more were not counted. */
export function countText({ locale }: Texts, { count, more = false }: { readonly count: number; readonly more?: boolean }): string {
    return `${count.toLocaleString(locale)}${more ? '+' : ''}`;
}

/** A length of time in words. @param milliseconds Whole ones. */
export function durationText({ units, locale }: Texts, milliseconds: number): string {
    const [form, count] = milliseconds < 10_000 ? [units.milliseconds, milliseconds] : [units.seconds, Math.round(milliseconds / 1000)];
    return filled(form, [count.toLocaleString(locale)]);
}

/** A text of a number, in the form that goes with it. @param more Whether there may be more than that. */
export function counted(texts: Texts, forms: Forms, count: number, more = false): string {
    const form = more ? forms.other : (forms[new Intl.PluralRules(texts.locale).select(count)] ?? forms.other);
    return filled(form, [countText(texts, { count, more })]);
}
