import type { Command } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import { PLAIN_SETTINGS, SETTING_NAMES } from '../lib/webhooks/exporters/plain-settings.ts';
import type { HeaderPairs } from '../lib/webhooks/messages/message-headers.ts';
import { repeated } from './option-values.ts';
import { printWarning, WrongUsage } from './output/errors.ts';

/*
 * How a command is told what nobody else may see. Every user of a machine can list its processes with their arguments, so a secret comes
 * from a file, from stdin or from a variable; as an argument it is for trials, and warned of.
 */

/** Adds `--url`, and `--url-file` and `--url-env` for one that holds a token; the command of a new exporter needs one of them. */
export function addUrl(target: Command, needed: boolean): Command {
    target
        .option('--url <url>', 'where to POST, http or https')
        .option('--url-file <file>', 'the same where it holds a token, read from a file, - for stdin')
        .option('--url-env <variable>', 'the same, taken from an environment variable');
    return needed ? target.hook('preAction', () => assertUrl(target)) : target;
}

function assertUrl(target: Command): void {
    const { url, urlFile, urlEnv } = target.opts();
    if ([url, urlFile, urlEnv].every((value) => value === undefined)) {
        target.error("error: required option '--url <url>', '--url-file <file>' or '--url-env <variable>' not specified");
    }
}

/** Adds `--secret-file` and `--secret-env`, and `--secret` for trials. */
export function addSecret(target: Command, what: string): Command {
    return target
        .option('--secret-file <file>', `${what}, read from a file, - for stdin`)
        .option('--secret-env <variable>', `${what}, taken from an environment variable`)
        .option('--secret <secret>', `${what}, for trials: other users can see it`);
}

/** Adds `--header-file` and `--header-env`, and `--header` for trials. */
export function addHeaders(target: Command): Command {
    return target
        .option('--header-file <file>', 'additional headers, a line "Name: value" each, read from a file, - for stdin')
        .option('--header-env <variable>', 'the same, taken from an environment variable')
        .option('--header <header>', 'additional header, for trials: other users can see it; repeatable', repeated);
}

/** As the command line was parsed. */
export type Options = Readonly<Record<string, unknown>>;

/** What nobody else may see: the option that names its file, and the one that names its variable. */
const SOURCES = {
    url: ['urlFile', 'urlEnv'],
    secret: ['secretFile', 'secretEnv'],
    header: ['headerFile', 'headerEnv'],
    basic: ['basicFile', 'basicEnv'],
    clientKey: ['clientKey', 'clientKeyEnv'],
    oauth: ['oauth', 'oauthEnv'],
    proxy: ['proxyFile', 'proxyEnv'],
    formatSecret: ['formatSecretFile', 'formatSecretEnv'],
    tlsKey: ['tlsKey', 'tlsKeyEnv'],
} as const;

/** Something secret that an option names the place of. */
export type HiddenName = keyof typeof SOURCES;

/** Options that name a file, any of which may be stdin. */
const FILES: readonly string[] = [
    ...Object.values(SOURCES).map(([file]) => file),
    ...SETTING_NAMES.filter((name) => PLAIN_SETTINGS[name].as === 'json'),
    ...['ca', 'clientCert', 'tlsCert', 'scanDatabaseFile'],
];

/** What comes after the first would read nothing, or what was meant for another. @throws WrongUsage. */
export function assertOneStdin(options: Options): void {
    const [first, second] = FILES.filter((name) => options[name] === '-').map(flagOf);
    if (first !== undefined && second !== undefined) {
        throw new WrongUsage(`Only one of ${first} and ${second} can be read from stdin`, first.slice(2));
    }
}

/** `secretFile` as it is typed. */
function flagOf(name: string): string {
    return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * The secret that the options name, undefined when none does. A line break at its end is not part of it.
 *
 * @throws ScanwireError `INVALID_INPUT` for more than one, and for a file or a variable without any; never with the secret.
 */
export async function secretOf(options: Options): Promise<string | undefined> {
    return await oneOf('secret', options, () => true);
}

/** The URL that the options name, as {@link secretOf}. One that may hold a token is warned of among the arguments. */
export async function urlOf(options: Options): Promise<string | undefined> {
    return await oneOf('url', options, mayHoldToken);
}

/** Tokens stand in the query, or are a long part of the path. */
function mayHoldToken(text: string): boolean {
    const url = URL.canParse(text) ? new URL(text) : null;
    return url !== null && (url.search !== '' || url.pathname.split('/').some((part) => part.length >= LEAST_TOKEN));
}

const LEAST_TOKEN = 16;

async function oneOf(name: 'secret' | 'url', options: Options, isWarnedOf: (value: string) => boolean): Promise<string | undefined> {
    const typed = options[name];
    if ([options[`${name}File`], options[`${name}Env`], typed].filter((value) => value !== undefined).length > 1) {
        throw new WrongUsage(`Give --${name}-file, --${name}-env or --${name}, and only one of them`, name);
    }

    if (typed === undefined) {
        return await hiddenLine(name, options);
    }

    if (isWarnedOf(String(typed))) {
        warn(name, options);
    }
    return String(typed);
}

/**
 * The additional headers that the options name; none for `--no-header`, undefined when there is nothing about them. Not parsed by the
 * options themselves: commander's message would hold the header, and with it a secret.
 *
 * @throws ScanwireError `INVALID_INPUT` as {@link secretOf}.
 */
export async function headersOf(options: Options): Promise<HeaderPairs | undefined> {
    const { header } = options;
    const text = await hiddenLine('header', options);
    if (header === false) {
        if (text !== undefined) {
            throw new WrongUsage('Give either --no-header or headers', 'header');
        }

        return [];
    }

    const typed = Array.isArray(header) ? (header as readonly string[]) : [];
    if (typed.length > 0) {
        warn('header', options);
    }

    const lines = text?.split(/\r?\n/).filter((line) => line.trim() !== '') ?? [];
    return text === undefined && typed.length === 0 ? undefined : [...lines, ...typed].map(headerPair);
}

/**
 * What the file, stdin or the variable holds that the options name for it; undefined where they name none.
 *
 * @throws ScanwireError `INVALID_INPUT` for both, for what cannot be read and for what holds nothing; never with what it holds.
 */
export async function hiddenText(name: HiddenName, options: Options): Promise<string | undefined> {
    const [fileOption, variableOption] = SOURCES[name];
    // `--no-oauth` leaves a false.
    const [file, variable] = [options[fileOption] === false ? undefined : options[fileOption], options[variableOption]];
    if (file !== undefined && variable !== undefined) {
        throw new WrongUsage(`Give ${flagOf(fileOption)} or ${flagOf(variableOption)}, and only one of them`, flagOf(name).slice(2));
    }

    if (file === undefined && variable === undefined) {
        return undefined;
    }

    const [option, source] = variable === undefined ? [fileOption, file === '-' ? 'stdin' : file] : [variableOption, variable];
    const text = variable === undefined ? await textOfFile(String(file)) : process.env[String(variable)];
    if (text === undefined || text.trim() === '') {
        throw refused(flagOf(option).slice(2), `There is nothing in ${String(source)}, which ${flagOf(option)} names`);
    }

    return text;
}

/** The same without a line break at its end. */
async function hiddenLine(name: HiddenName, options: Options): Promise<string | undefined> {
    return (await hiddenText(name, options))?.replace(/\r?\n$/, '');
}

function headerPair(text: string): readonly [string, string] {
    const colon = text.indexOf(':');
    if (colon < 1) {
        throw refused('header', 'A header must have the form "Name: value"');
    }

    return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

/**
 * What a file or a variable of an option holds as JSON. Null would drop what is there, which only `--no-…` says: a filter or a token that a script has not
 * found must not be one that nobody wants.
 *
 * @throws ScanwireError `INVALID_INPUT` for null.
 */
export function notNull(name: string, value: unknown): unknown {
    if (value === null) {
        throw refused(name, `What is given for --${name} must be more than null`);
    }
    return value;
}

/** What is refused names an option, never what it was given. */
export function refused(field: string, message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}

function warn(name: 'secret' | 'header' | 'url', { json }: Options): void {
    const other = `--${name}-file FILE, --${name}-file - or --${name}-env VARIABLE`;
    printWarning(name, `Every user of this machine can see what --${name} is given, in the list of processes: use ${other}`, json === true);
}

/** The text of a file, - for stdin. What reads it is loaded with the first: most commands are given none. */
export async function textOfFile(path: string): Promise<string> {
    const { readText } = await import('./input-file.ts');
    return await readText(path);
}
