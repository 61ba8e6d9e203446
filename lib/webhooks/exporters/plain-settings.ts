import type { Filter } from '../events/filter.ts';
import {
    AFTER_EXHAUSTED,
    type AfterExhausted,
    SIGNATURE_FORMS,
    type SignatureForm,
    TRUST_SETTINGS,
    type Trust,
} from '../setting-values.ts';

/*
 * The plain settings of an exporter: they are stored as they are, and whoever sees the exporter sees them. Schemas, columns, flags of the command line,
 * controls of the console's form and the contract tests of stores (`adapters/contract`) derive from the table here, which stands apart from the schemas
 * because the command line does not load Joi. A new setting is its type and its entry here, a column in a migration, and its label in the texts of the
 * admin console.
 */

/** What the plain settings hold. */
export interface PlainSettings {
    /** Name of the collector that sends for it: a pool of workers, for example those inside a customer's network. */
    readonly collector: string;
    /** May be empty; goes out as `webhook_name` of a `test`. */
    readonly name: string;
    readonly trust: Trust;
    /** The kinds of events that it gets, each a name or the beginning of names before a `*`; null for all but those about exporters (`exporter_…`). */
    readonly kinds: readonly string[] | null;
    /** What the body of an event must be like for it, null for any. */
    readonly filter: Filter | null;
    /** What is sent of an event: `native` for its body as it is. */
    readonly format: string;
    /** The document of the format `template`, else null. */
    readonly template: unknown;
    /** Whether it gets events that were published with the same order key one after another. */
    readonly ordered: boolean;
    /** What becomes of those after one that failed for good, where it is ordered: they go on, or wait until it is replayed, discarded or erased. */
    readonly afterExhausted: AfterExhausted;
    /** Forms of the signature, the preferred one first. */
    readonly signatures: readonly SignatureForm[];
    /** The most attempts a second, by all workers together; null for as many as it takes. */
    readonly rate: number | null;
}

/** Name of a plain setting. Its column is called the same in words of SQL, `after_exhausted` for `afterExhausted`; one of several values is `jsonb`. */
export type SettingName = keyof PlainSettings;

/** How a plain setting is declared. */
export type PlainSetting<Value = unknown> = SettingKind & {
    /** Where nobody says anything. One for which this is null may be null. */
    readonly byDefault: Value;
    /** As the command line has it, `--name <name>`. */
    readonly flag: string;
    /** What it is, for the help of the flag and, with a capital, for the schema. */
    readonly about: string;
    /** What there is without it, where it may be null or false: the help of the flag that says so, `--no-rate`. */
    readonly without?: string;
};

/** What it holds, by which it is checked, typed and shown. `max` is the most characters, the largest number, or the most items. */
type SettingKind =
    | { readonly as: 'text' | 'names'; readonly max: number }
    /** A whole one. `unit` may follow it on the command line. */
    | { readonly as: 'number'; readonly min: number; readonly max: number; readonly unit?: string }
    | { readonly as: 'choice' | 'choices'; readonly of: readonly string[] }
    | { readonly as: 'flag' | 'json' };

/** The plain settings, in the order in which they are listed. */
export const PLAIN_SETTINGS: { readonly [Name in SettingName]: PlainSetting<PlainSettings[Name]> } = {
    collector: { as: 'text', max: 64, byDefault: 'default', flag: '--collector <name>', about: 'pool of workers that sends for it' },
    name: { as: 'text', max: 255, byDefault: '', flag: '--name <name>', about: 'goes out as webhook_name' },
    trust: {
        as: 'choice',
        of: TRUST_SETTINGS,
        byDefault: 'strict',
        flag: '--trust <trust>',
        about: "how far the receiver's certificate is trusted",
    },
    kinds: {
        as: 'names',
        max: 100,
        byDefault: null,
        flag: '--kinds <kinds>',
        about: 'kinds of events that it gets, a * at the end for all that begin so',
        without: 'all kinds of events but those about exporters',
    },
    filter: {
        as: 'json',
        byDefault: null,
        flag: '--filter <file>',
        about: 'what the body of an event must be like',
        without: 'any body of an event',
    },
    format: {
        as: 'text',
        max: 64,
        byDefault: 'native',
        flag: '--format <format>',
        about: 'what is sent of an event: native, cloudevents, slack …',
    },
    template: {
        as: 'json',
        byDefault: null,
        flag: '--template <file>',
        about: 'document of the format template',
        without: 'no document, as for the other formats',
    },
    ordered: {
        as: 'flag',
        byDefault: false,
        flag: '--ordered',
        about: 'events with the same order key go one after another',
        without: 'events of an order key go without waiting for each other',
    },
    afterExhausted: {
        as: 'choice',
        of: AFTER_EXHAUSTED,
        byDefault: 'skip',
        flag: '--after-exhausted <what>',
        about: 'what becomes of those after one of their order key that failed for good',
    },
    signatures: {
        as: 'choices',
        of: SIGNATURE_FORMS,
        byDefault: ['base64'],
        flag: '--signature <form>',
        about: 'forms of the signature',
    },
    rate: {
        as: 'number',
        min: 1,
        max: 1000,
        unit: '/s',
        byDefault: null,
        flag: '--rate <n/s>',
        about: 'the most attempts a second, by all workers together',
        without: 'as many attempts a second as it takes',
    },
};

/** The names of {@link PLAIN_SETTINGS}, in their order. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(PLAIN_SETTINGS) as SettingName[];

/** Those that the console's form and lists show apart from the others. */
const SHOWN_APART: readonly SettingName[] = [
    'collector',
    'name',
    'trust',
    'kinds',
    'filter',
    'format',
    'template',
    'ordered',
    'afterExhausted',
    'signatures',
];

/** The others, which stand together there. */
export const SHOWN_TOGETHER: readonly SettingName[] = SETTING_NAMES.filter((name) => !SHOWN_APART.includes(name));

/** Something for each plain setting. */
export function byPlainSetting<T>(make: (setting: PlainSetting, name: SettingName) => T): Readonly<Record<SettingName, T>> {
    return Object.fromEntries(SETTING_NAMES.map((name) => [name, make(PLAIN_SETTINGS[name], name)])) as Record<SettingName, T>;
}

/** Whether nothing is shown of a value; rows of a store of another maker may lack it. */
export function isUnset(value: unknown): boolean {
    return value === undefined || value === null || value === false;
}

/** What an exporter has of a plain setting, as people read it; empty where it is unset. */
export function plainText(name: SettingName, exporter: PlainSettings): string {
    const value = exporter[name];
    if (isUnset(value)) {
        return '';
    }
    switch (PLAIN_SETTINGS[name].as) {
        case 'flag':
            return 'yes';
        case 'json':
            return JSON.stringify(value);
        default:
            return [value].flat().join(', ');
    }
}
