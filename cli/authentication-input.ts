/** How a command is told what an exporter authenticates by: all of it from files and variables, so that no argument holds any of it. */
import type { Command } from 'commander';
import type {
    Authentication,
    AuthenticationSettings,
    BasicCredentials,
    ClientCertificate,
    ProxySettings,
} from '../lib/webhooks/exporters/authentication.ts';
import { definedFields } from './command.ts';
import { WrongUsage } from './output/errors.ts';
import { type HiddenName, hiddenText, notNull, type Options, refused, textOfFile } from './secret-input.ts';

/** Adds the flags; and those that drop it, where there may be some. */
export function addAuthentication(target: Command, dropping: boolean): Command {
    target
        .option('--basic-file <file>', 'user:password for Authorization: Basic, read from a file, - for stdin')
        .option('--basic-env <variable>', 'the same, taken from an environment variable')
        .option('--ca <file>', "authorities to trust instead of the system's, read from a PEM file")
        .option('--client-cert <file>', 'certificate to present, with those above it, read from a PEM file')
        .option('--client-key <file>', 'its key, not encrypted, read from a PEM file, - for stdin')
        .option('--client-key-env <variable>', 'the same, taken from an environment variable')
        .option('--oauth <file>', 'client of a token server (OAuth 2), read from a JSON file, - for stdin')
        .option('--oauth-env <variable>', 'the same, taken from an environment variable')
        .option('--proxy-file <file>', 'URL of a proxy, with user and password, read from a file, - for stdin')
        .option('--proxy-env <variable>', 'the same, taken from an environment variable');
    return dropping
        ? target
              .option('--no-basic', 'drop user and password')
              .option('--no-ca', "trust the system's authorities again")
              .option('--no-client-cert', 'present no certificate any more')
              .option('--no-oauth', 'send no token any more')
              .option('--no-proxy', 'call the receiver straight again')
        : target;
}

/**
 * What the options name of what an exporter authenticates by; null for what is dropped, absent when there is nothing about it.
 *
 * @throws ScanwireError `INVALID_INPUT` for files and variables that cannot be read or do not fit together; never with what they hold.
 */
export async function authenticationOf(options: Options): Promise<AuthenticationSettings> {
    return definedFields<Authentication>({
        basic: await hidden('basic', options, basicIn),
        ca: typeof options.ca === 'string' ? await textOfFile(options.ca) : dropped(options.ca),
        clientCertificate: await clientCertificateOf(options),
        proxy: await hidden('proxy', options, proxyIn),
        oauth: await hidden('oauth', options, (text) => notNull('oauth', jsonIn('oauth', text))),
    }) as AuthenticationSettings;
}

/** What was read of it; null where a flag says that there is to be none, undefined where nothing says anything. */
async function hidden<T>(name: HiddenName, options: Options, parse: (text: string) => T): Promise<T | null | undefined> {
    const text = await hiddenText(name, options);
    if (text !== undefined && options[name] === false) {
        throw new WrongUsage(`Give either --no-${name} or what --${name} is to be`, name);
    }

    return text === undefined ? dropped(options[name]) : parse(text);
}

/** The `--no-…` of an option leaves a false. */
function dropped(flag: unknown): null | undefined {
    return flag === false ? null : undefined;
}

async function clientCertificateOf(options: Options): Promise<ClientCertificate | null | undefined> {
    const { clientCert } = options;
    const key = await hiddenText('clientKey', options);
    if ((typeof clientCert === 'string') !== (key !== undefined)) {
        throw new WrongUsage('Give --client-cert and --client-key, or --client-key-env, together', 'client-cert');
    }

    return typeof clientCert === 'string' && key !== undefined ? { certificate: await textOfFile(clientCert), key } : dropped(clientCert);
}

function basicIn(text: string): BasicCredentials {
    const line = text.replace(/\r?\n$/, '');
    const colon = line.indexOf(':');
    if (colon === -1) {
        throw refused('basic', 'User and password, of --basic-file or --basic-env, must be one line, user:password');
    }

    return { username: line.slice(0, colon), password: line.slice(colon + 1) };
}

/** A URL, or JSON of all that can be said of a proxy. */
function proxyIn(text: string): ProxySettings {
    const trimmed = text.trim();
    return trimmed.startsWith('{') ? (jsonIn('proxy', trimmed) as ProxySettings) : { url: trimmed };
}

function jsonIn(name: 'oauth' | 'proxy', text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        const rule = name === 'proxy' ? 'a URL, or valid JSON' : 'valid JSON';
        throw refused(name, `What is given for --${name} must be ${rule}`);
    }
}
