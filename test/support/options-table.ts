import { readFile } from 'node:fs/promises';
import type Joi from 'joi';

/** One option: its name, with dots for nested ones and `[]` for items, and what stands in the column of defaults. */
export type DocumentedOption = readonly [name: string, defaultText: string];

interface Described {
    readonly type?: string;
    readonly flags?: { readonly default?: unknown; readonly presence?: string };
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
}

/**
 * The table below the heading `Options` of a page: every row whose first column is a name in backticks. Backticks around
 * the default are dropped.
 *
 * @param page Path from the root of the project, for example `docs/token-auth.md`.
 */
export async function documentedOptions(page: string, heading = 'Options'): Promise<readonly DocumentedOption[]> {
    const text = await readFile(new URL(`../../../${page}`, import.meta.url), 'utf8');
    const [, section = ''] = text.split(new RegExp(`^#+ ${heading}$`, 'm'));
    const [table = ''] = section.split(/^#/m);
    const rows = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    return rows.flatMap(([, name = '', , defaultText = '']) =>
        name.startsWith('`') ? [[withoutBackticks(name), withoutBackticks(defaultText)] as const] : [],
    );
}

/**
 * The options of a schema as such a table must show them: `required`, the default as JSON (text without quotes), or nothing.
 * Options below an object or the items of an array follow it.
 */
export function schemaOptions(schema: Joi.Schema): readonly DocumentedOption[] {
    return optionsBelow(schema.describe() as Described, '');
}

function optionsBelow({ keys = {}, items = [] }: Described, prefix: string): readonly DocumentedOption[] {
    const own = Object.entries(keys).flatMap(([name, option]) => [
        [`${prefix}${name}`, defaultText(option)] as const,
        ...optionsBelow(option, `${prefix}${name}${option.type === 'array' ? '[]' : ''}.`),
    ]);
    return [...own, ...items.flatMap((item) => optionsBelow(item, prefix))];
}

function defaultText({ flags = {} }: Described): string {
    if (flags.presence === 'required') {
        return 'required';
    }

    // One that is made of another option is told in words.
    const { default: value } = flags;
    return value === undefined || typeof value === 'function' ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

function withoutBackticks(text: string): string {
    return text.replaceAll('`', '');
}
