import type { Command } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import type {
    Authentication,
    AuthenticationSettings,
    BasicCredentials,
    ClientCertificate,
    ProxySettings,
} from '../lib/webhooks/authentication.ts';
import type { HeaderPairs } from '../lib/webhooks/exporter.ts';
import { definedFields, repeated } from './command.ts';
import { readJson, readText } from './input.ts';
import { printWarning } from './output/errors.ts';

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

/** Adds the flags of what an exporter authenticates by, all of them files; and those that drop it, where there may be some. */
export function addAuthentication(target: Command, dropping: boolean): Command {
    target
        .option('--basic-file <file>', 'user:password for Authorization: Basic, read from a file, - for stdin')
        .option('--ca <file>', "authorities to trust instead of the system's, read from a PEM file")
        .option('--client-cert <file>', 'certificate to present, with those above it, read from a PEM file')
        .option('--client-key <file>', 'its key, not encrypted, read from a PEM file')
        .option('--oauth <file>', 'client of a token server (OAuth 2), read from a JSON file, - for stdin')
        .option('--proxy-file <file>', 'URL of a proxy, with user and password, read from a file, - for stdin');
    return dropping
        ? target
              .option('--no-basic', 'drop user and password')
              .option('--no-ca', "trust the system's authorities again")
              .option('--no-client-cert', 'present no certificate any more')
              .option('--no-oauth', 'send no token any more')
              .option('--no-proxy', 'call the receiver straight again')
        : target;
}

type Options = Readonly<Record<string, unknown>>;

/** Options that name a file, any of which may be stdin. */
const FILES = ['urlFile', 'secretFile', 'headerFile', 'basicFile', 'ca', 'clientCert', 'clientKey', 'oauth', 'proxyFile'] as const;
const MORE_FILES = ['filter', 'template', 'formatSecretFile'] as const;

/** What comes after the first would read nothing, or what was meant for another. @throws ScanwireError `INVALID_INPUT`. */
export function assertOneStdin(options: Options): void {
    const [first, second] = [...FILES, ...MORE_FILES].filter((name) => options[name] === '-').map(flagOf);
    if (first !== undefined && second !== undefined) {
        throw refused(first.slice(2), `Only one of ${first} and ${second} can be read from stdin`);
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
        throw refused(name, `Give --${name}-file, --${name}-env or --${name}, and only one of them`);
    }

    if (typed === undefined) {
        return await hidden(name, options);
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
    const text = await hidden('header', options);
    if (header === false) {
        if (text !== undefined) {
            throw refused('header', 'Give either --no-header or headers');
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
 * What the options name of what an exporter authenticates by; null for what is dropped, absent when there is nothing about it.
 *
 * @throws ScanwireError `INVALID_INPUT` for files that cannot be read or do not fit together; never with what they hold.
 */
export async function authenticationOf(options: Options): Promise<AuthenticationSettings> {
    return definedFields<Authentication>({
        basic: await fileOf(options.basicFile, basicIn, options.basic),
        ca: await fileOf(options.ca, (text) => text, options.ca),
        clientCertificate: await clientCertificateOf(options),
        proxy: await fileOf(options.proxyFile, proxyIn, options.proxy),
        oauth: typeof options.oauth === 'string' ? await readJson(options.oauth) : options.oauth === false ? null : undefined,
    }) as AuthenticationSettings;
}

/** What a file holds; null where a flag says that there is to be none, undefined where nothing says anything. */
async function fileOf<T>(file: unknown, parse: (text: string) => T, flag: unknown): Promise<T | null | undefined> {
    if (typeof file === 'string') {
        return parse(await readText(file));
    }

    return flag === false ? null : undefined;
}

async function clientCertificateOf({ clientCert, clientKey }: Options): Promise<ClientCertificate | null | undefined> {
    if ((typeof clientCert === 'string') !== (typeof clientKey === 'string')) {
        throw refused('client-cert', 'Give --client-cert and --client-key together');
    }

    const key = typeof clientKey === 'string' ? await readText(clientKey) : '';
    return await fileOf(clientCert, (certificate) => ({ certificate, key }), clientCert);
}

function basicIn(text: string): BasicCredentials {
    const line = text.replace(/\r?\n$/, '');
    const colon = line.indexOf(':');
    if (colon === -1) {
        throw refused('basic-file', 'The file of --basic-file must hold one line, user:password');
    }

    return { username: line.slice(0, colon), password: line.slice(colon + 1) };
}

/** A URL, or JSON of all that can be said of a proxy. */
function proxyIn(text: string): ProxySettings {
    const trimmed = text.trim();
    if (!trimmed.startsWith('{')) {
        return { url: trimmed };
    }

    try {
        return JSON.parse(trimmed);
    } catch {
        throw refused('proxy-file', 'The file of --proxy-file must hold a URL, or valid JSON');
    }
}

type HiddenName = 'secret' | 'header' | 'url';

/** What the file or the variable holds. */
async function hidden(name: HiddenName, options: Options): Promise<string | undefined> {
    const { [`${name}File`]: file, [`${name}Env`]: variable } = options;
    if (file !== undefined && variable !== undefined) {
        throw refused(name, `Give --${name}-file or --${name}-env, and only one of them`);
    }

    if (file === undefined && variable === undefined) {
        return undefined;
    }

    const text = variable === undefined ? await readText(String(file)) : process.env[String(variable)];
    const held = text?.replace(/\r?\n$/, '') ?? '';
    if (held === '') {
        const [option, source] = variable === undefined ? ['file', file === '-' ? 'stdin' : file] : ['env', variable];
        throw refused(`${name}-${option}`, `There is no ${name} in ${String(source)}, which --${name}-${option} names`);
    }

    return held;
}

function headerPair(text: string): readonly [string, string] {
    const colon = text.indexOf(':');
    if (colon < 1) {
        throw refused('header', 'A header must have the form "Name: value"');
    }

    return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function refused(field: string, message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}

function warn(name: HiddenName, { json }: Options): void {
    const other = `--${name}-file FILE, --${name}-file - or --${name}-env VARIABLE`;
    printWarning(name, `Every user of this machine can see what --${name} is given, in the list of processes: use ${other}`, json === true);
}
