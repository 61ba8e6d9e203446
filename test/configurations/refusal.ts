import type { Test } from 'tap';

/** Stands where a secret could: no message may repeat it. */
export const HUSH = 'hush-4711';

/** A configuration that cannot work. */
export interface Wrong {
    /** What it is of, for example `rest-api-v2`. */
    readonly of: string;
    /** The option as the message must name it, with the place where it is: `resources[0].path`. */
    readonly option: string;
    /** What else the message must say: the rule that the option breaks. */
    readonly rule: RegExp;
    /** Gives it to what it is of, up to the start of that. */
    readonly give: () => unknown;
}

/** A table row. */
export const wrong = (of: string, option: string, rule: RegExp, give: Wrong['give']): Wrong => ({ of, option, rule, give });

/** Functions without their types: those who get options wrong have none. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export const untyped = (value: unknown): any => value;

/** What is said of one. */
interface Said {
    readonly message: string;
    readonly code: unknown;
}

/** Gives each, and looks at what is said of it: an error of ours with option and rule, and nothing secret. */
export async function refusesAll(t: Test, table: readonly Wrong[]): Promise<void> {
    for (const { of, option, rule, give } of table) {
        const said = await saidOf(give);
        const title = `${of}: ${option} ${rule.source}`;
        if (said === null) {
            t.fail(`${title} is accepted`);
            continue;
        }

        const { message, code } = said;
        t.match(code, /^(MISCONFIGURED|INVALID_INPUT)$/, `${title} is an error of ours`, { message });
        t.ok(message.includes(option), `${title} names the option`, { message });
        t.match(message, rule, `${title} says the rule`);
        t.notMatch(message, HUSH, `${title} keeps secrets`);
        t.match(message, /^[A-Z{a-z]/, title);
    }
}

async function saidOf(give: Wrong['give']): Promise<Said | null> {
    try {
        await give();
        return null;
    } catch (error) {
        const { message, code } = error as Error & { readonly code?: unknown };
        return { message, code };
    }
}
