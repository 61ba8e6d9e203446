import Boom from '@hapi/boom';
import type { NamedPlugin, Request, ServerAuthScheme, ServerInjectOptions } from '@hapi/hapi';
import { ScanwireError } from '../../lib/errors.ts';
import type { Eventual } from '../../lib/eventual.ts';
import { checked } from '../../lib/schema-validation.ts';
import type { ReplayCache } from '../../lib/verify/replay-cache.ts';
import { assertNew, assertVerifyOptions, hasSignature, type Verified, verify } from '../../lib/verify/verify.ts';
import { VERSION } from '../../lib/version.ts';
import { orUnavailable } from '../errors.ts';
import { arrived, inTime } from '../in-time.ts';
import { claimInstance } from '../instance.ts';
import { logTags } from '../log-and-events.ts';
import { withName } from '../route-authorization.ts';
import { optionsSchema, type SecretsOf, type WebhookAuthOptions } from './options.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { SecretsOf, WebhookAuthOptions } from './options.ts';

/** Registers a scheme, `webhook` by default, and a strategy of it, for routes that messages of the webhook exporter are sent to. */
export const plugin: NamedPlugin<WebhookAuthOptions> = {
    name: 'webhook-auth',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    register(server, options) {
        const checkedOptions = checked(optionsSchema, options, { subject: 'webhook-auth options', code: 'MISCONFIGURED' });
        const { instance, secrets, strategy = instance ?? 'webhook', scheme = instance ?? 'webhook', ...rest } = checkedOptions;
        assertVerifyOptions({ ...rest, secrets: typeof secrets === 'function' ? ['of a request'] : secrets }, 'webhook-auth options');
        claimInstance(server, 'webhook-auth', checkedOptions);

        const secretsOf: SecretsOf = typeof secrets === 'function' ? secrets : () => secrets;
        withName('webhook-auth', 'scheme', () => server.auth.scheme(scheme, webhookScheme(secretsOf, rest, { scheme, instance })));
        withName('webhook-auth', 'strategy', () => server.auth.strategy(strategy, scheme));
    },
};

/** What everybody reads whose message is not verified; why is for the log. */
const DENIAL = 'The message is not verified: a signature is missing or wrong, or too old';
const UNREACHABLE = { plugin: 'webhook-auth', message: 'The secrets of webhooks cannot be read now' };
const FORGETFUL = { plugin: 'webhook-auth', message: 'It cannot be told now whether the message has come before' };

/**
 * The scheme. A request without any signature is none of its business, where its route has another strategy to ask or lets anybody in. One
 * that has a signature is verified over the bytes that came, as soon as hapi has read them and before anything but its parser sees them.
 */
function webhookScheme(
    secretsOf: SecretsOf,
    options: Omit<WebhookAuthOptions, 'secrets'>,
    { scheme, instance }: { readonly scheme: string; readonly instance: string | undefined },
): ServerAuthScheme {
    return () => ({
        // Nobody gets past `payload` on a route that has one; those that have none are refused by their method.
        options: { payload: true },

        authenticate(request, h) {
            if (request.method !== 'post' || !hasSignature(request.raw.req.headers, options.vendor)) {
                return h.unauthenticated(Boom.unauthorized(null, scheme));
            }

            const artifacts: WebhookArtifacts = { raw: rawBody(request) };
            return h.authenticated({ credentials: {}, artifacts });
        },

        async payload(request, h) {
            // Whatever is asked for one message is due together.
            arrived(request);
            const raw = (request.auth.artifacts as unknown as WebhookArtifacts).raw();
            const secrets = await orUnavailable(request, { ...UNREACHABLE, instance }, () => inTime(request, () => secretsOf(request)));
            try {
                Object.assign(request.auth.credentials, await verifiedBy(raw, request, { ...options, secrets, instance }));
            } catch (error) {
                if (!(error instanceof ScanwireError && error.code === 'UNVERIFIED')) {
                    throw error;
                }

                request.log([...logTags('webhook-auth', instance), 'unverified'], error);
                throw Boom.unauthorized(DENIAL);
            }

            return h.continue;
        },
    });
}

async function verifiedBy(
    raw: Uint8Array | null,
    request: Request,
    { replays, instance, secrets, ...options }: WebhookAuthOptions & { readonly secrets: readonly string[] },
): Promise<Verified> {
    if (raw === null || secrets.length === 0) {
        throw new ScanwireError('UNVERIFIED', raw === null ? 'The body was not read as a whole' : 'There is no secret for the request');
    }

    // `verify` asks at the end, when all else is right, and does not wait.
    let ask = (): Eventual<boolean> => true;
    const askedAfterwards: ReplayCache | undefined = replays && {
        isNew(...message) {
            ask = () => replays.isNew(...message);
            return true;
        },
    };
    const verified = verify(raw, request.raw.req.headers, { ...options, secrets, replays: askedAfterwards });
    assertNew(await orUnavailable(request, { ...FORGETFUL, instance }, () => inTime(request, ask)), 'webhook-auth options');
    return verified;
}

/**
 * Listens to the body as it comes in, which hapi only parses. What is longer than the route takes is not kept: hapi refuses it, and reads on.
 *
 * @returns The bytes, to be called once hapi has read them; null when they were not kept.
 */
function rawBody(request: Request): () => Buffer | null {
    const { output, maxBytes = 0 } = request.route.settings.payload ?? {};
    if (output !== 'data') {
        throw new ScanwireError('MISCONFIGURED', "Routes of webhook-auth must have payload.output 'data'", { field: 'payload.output' });
    }

    const parts: Buffer[] = [];
    let length = 0;
    // hapi's types take it for a text.
    request.events.on('peek', (part: unknown) => {
        length += (part as Buffer).byteLength;
        if (length <= maxBytes) {
            parts.push(part as Buffer);
        }
    });
    return () => (length > maxBytes ? null : Buffer.concat(parts));
}

/** `request.auth.artifacts` of a route with the strategy. */
export interface WebhookArtifacts {
    /** The body as it came, for whoever passes the message on; null where it was not read. */
    raw(): Buffer | null;
}

const SIMULATED: Verified = { forms: ['standard-webhooks'], id: 'simulated', time: new Date(0), kind: 'test' };

/**
 * For tests of an application's own routes: the `auth` of `server.inject` as if a message had been verified.
 *
 * @example
 * await server.inject({ method: 'POST', url: '/hook', payload: { title: 'x' }, auth: simulate({ kind: 'idr_investigation_created' }) });
 */
export function simulate(verified: Partial<Verified> = {}, strategy = 'webhook'): NonNullable<ServerInjectOptions['auth']> {
    const credentials: object = { ...SIMULATED, ...verified };
    // hapi's types leave it out.
    const unsigned: object = { payload: false };
    return { strategy, credentials, ...unsigned };
}

/**
 * Types the credentials of one route and leaves those of all others alone:
 * `server.route<WebhookAuthRefs>({ …, handler: (request) => request.auth.credentials.kind })`.
 */
export interface WebhookAuthRefs {
    AuthCredentialsExtra: Verified;
}
