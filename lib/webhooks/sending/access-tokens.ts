import { createHash } from 'node:crypto';
import { machineClock } from '../../clock.ts';
import { ConnectionFailure, lateBy } from '../../egress/connection-code.ts';
import { ProxyFailure } from '../../egress/proxy.ts';
import { type CodedError, codeNote } from '../../errors.ts';
import { afterWait, within } from '../../within.ts';
import type { Authentication, OAuthClient } from '../exporters/authentication.ts';
import { parseReceiverUrl } from '../exporters/receiver-url.ts';
import { codeOfError } from '../outcomes/attempt-result.ts';
import { AttemptFailure } from '../outcomes/outcome.ts';
import type { Connection } from './connection.ts';

/** For whom a token is: it is sent to nobody else. */
export interface TokenUse {
    readonly exporterId: string;
    /** Whose exporter it is; the deployment's when absent. */
    readonly owner?: string | null;
    /** Of the receiver. */
    readonly origin: string;
    readonly authentication: Authentication & { readonly oauth: OAuthClient };
}

/** A token that an attempt goes out with. */
export interface UsedToken {
    readonly token: string;
    /** Tells what the receiver has answered to it. */
    answered(status: number | null): void;
}

/** Access tokens of exporters (OAuth 2, client credentials), kept in the memory of this process for as long as they hold. */
export interface AccessTokens {
    /**
     * A valid token: the cached one, also while it is being renewed, or a new one, for which all attempts that need it wait together.
     *
     * @throws AttemptFailure `token_failed` when the token server gives none, or what a connection fails with on this side.
     */
    of(use: TokenUse, signal: AbortSignal): Promise<UsedToken>;
    /** Gives up what is being asked for. */
    close(): void;
}

/** How a token server is reached. */
type TokenWay = Pick<Authentication, 'ca' | 'proxy'> & Pick<TokenUse, 'owner'>;

/** What tokens are made with. */
export interface AccessTokensOptions {
    /** Opens a connection to a token server, vetted and secured as one to a receiver. */
    readonly connect: (url: URL, way: TokenWay, signal: AbortSignal) => Promise<Connection>;
    /** Milliseconds for the whole request. */
    readonly timeout: number;
    /** Exporters whose tokens are kept; beyond them, those that were asked for first are forgotten. */
    readonly maxCached?: number;
    readonly monotonic?: () => number;
}

interface CachedToken {
    /** SHA-256 digest of everything with which the token was asked for, and for whom. */
    readonly use: string;
    readonly token: string;
    readonly endsAt: number;
    /** When a new token is asked for, while this one is still valid and goes on being used. */
    renewAt: number;
    /** Whether the receiver has accepted the token. */
    accepted: boolean;
    readonly since: number;
}

/** Milliseconds for which a token is used whose answer does not say how long it is valid, and for which any token is used at most. */
const DEFAULT_LIFE = 300_000;
const MAX_LIFE = 24 * 3_600_000;

/** How long before its end a token is replaced: this part of its life, and at most `max` milliseconds. */
const RENEWED_IN = { part: 0.2, max: 60_000 };

/** Milliseconds before an attempt asks again for a token that could not be renewed, but is still valid. */
const RENEW_AGAIN = 10_000;

/** Milliseconds after which a token is replaced that the receiver refuses and has never accepted. Before that a new one would fare no better. */
const REPLACED_AFTER = 60_000;

/** The tokens of a process. */
export function accessTokens({ connect, timeout, maxCached = 1_000, monotonic = machineClock.now }: AccessTokensOptions): AccessTokens {
    const cached = new Map<string, CachedToken>();
    const asked = new Map<string, Promise<CachedToken>>();
    const deadlines = new Set<AbortController>();

    function keep(exporterId: string, token: CachedToken): CachedToken {
        cached.delete(exporterId);
        cached.set(exporterId, token);
        const [oldest] = cached.keys();
        if (cached.size > maxCached && oldest !== undefined) {
            cached.delete(oldest);
        }
        return token;
    }

    async function ask({ exporterId, owner = null, authentication }: TokenUse, use: string): Promise<CachedToken> {
        const deadline = new AbortController();
        deadlines.add(deadline);
        const { token, life } = await requestToken(
            authentication.oauth,
            (url, signal) => connect(url, { ...wayOf(authentication), owner }, signal),
            { timeout, deadline },
        ).finally(() => deadlines.delete(deadline));
        const since = monotonic();
        const endsAt = since + life;
        const renewAt = endsAt - Math.min(life * RENEWED_IN.part, RENEWED_IN.max);
        return keep(exporterId, { use, token, since, endsAt, renewAt, accepted: false });
    }

    function askOnce(asking: TokenUse, use: string): Promise<CachedToken> {
        const answer = asked.get(use) ?? ask(asking, use).finally(() => asked.delete(use));
        asked.set(use, answer);
        return answer;
    }

    async function current(asking: TokenUse, signal: AbortSignal): Promise<CachedToken> {
        const use = createHash('sha256').update(JSON.stringify(asking)).digest('base64');
        const known = cached.get(asking.exporterId);
        const usable = known?.use === use && monotonic() < known.endsAt ? known : null;
        if (usable === null) {
            return await within(askOnce(asking, use), { timeout: timeout * 2, signal });
        }

        if (monotonic() >= usable.renewAt) {
            // No attempt waits for what it can do without. Why there is none is told once this one has ended.
            askOnce(asking, use).catch(() => {
                usable.renewAt = monotonic() + RENEW_AGAIN;
            });
        }
        return usable;
    }

    return {
        async of(asking, signal) {
            const one = await current(asking, signal);
            return {
                token: one.token,
                answered(status) {
                    if (status !== 401) {
                        one.accepted ||= status !== null && status < 400;
                    } else if (cached.get(asking.exporterId) === one && (one.accepted || monotonic() - one.since > REPLACED_AFTER)) {
                        cached.delete(asking.exporterId);
                    }
                },
            };
        },

        close() {
            for (const deadline of deadlines) {
                deadline.abort(new AttemptFailure('interrupted', 'The sender was closed before there was an access token'));
            }
        },
    };
}

/** How the token server is reached. The client certificate of the exporter is left out: it is for the receiver only. */
function wayOf({ oauth: { ca }, proxy }: TokenUse['authentication']): Pick<Authentication, 'ca' | 'proxy'> {
    return { ...(ca !== undefined && { ca }), ...(proxy !== undefined && { proxy }) };
}

/** The longest answer of a token server that is read, in bytes. */
const MAX_ANSWER = 65_536;

/** A token that a header can hold, and that is no longer than servers accept. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/** The error codes of RFC 6749 and RFC 8707. Any other text of a token server may contain anything, and is not repeated. */
const REFUSALS: ReadonlySet<unknown> = new Set([
    'invalid_request',
    'invalid_client',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_grant_type',
    'invalid_scope',
    'invalid_target',
]);

type ConnectTokenServer = (url: URL, signal: AbortSignal) => Promise<Connection>;

/** Asks for a token. @returns It, and the milliseconds for which it holds. @throws AttemptFailure, or an error that has its cause on this side. */
async function requestToken(
    { tokenUrl, clientId, clientSecret, scope, audience, authMethod }: OAuthClient,
    connect: ConnectTokenServer,
    { timeout, deadline }: { readonly timeout: number; readonly deadline: AbortController },
): Promise<{ readonly token: string; readonly life: number }> {
    const oauth = await import('oauth4webapi');
    const url = parseReceiverUrl(tokenUrl);
    const server = { issuer: url.origin, token_endpoint: url.href };
    const client = { client_id: clientId };
    const proof = authMethod === 'client_secret_post' ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret);
    const wanted = { ...(scope !== undefined && { scope }), ...(audience !== undefined && { audience }) };
    const { signal } = deadline;
    const callOff = afterWait(timeout, (by) => deadline.abort(lateBy(by, failed(`the token server had not answered after ${timeout} ms`))));
    let status: number | null = null;
    try {
        const response = await oauth.clientCredentialsGrantRequest(server, client, proof, wanted, {
            [oauth.customFetch]: async (_url: string, { headers, body }: TokenRequest) => {
                const answer = await post(await connect(url, signal), url, headers, body.toString(), signal);
                status = answer.status;
                return answer;
            },
        });
        const answer = await oauth.processClientCredentialsResponse(server, client, response);
        if (answer.token_type !== 'bearer' || !TOKEN.test(answer.access_token)) {
            throw failed('the token server gave one that cannot be sent as Bearer');
        }
        return { token: answer.access_token, life: Math.min((answer.expires_in ?? DEFAULT_LIFE / 1000) * 1000, MAX_LIFE) };
    } catch (error) {
        throw signal.aborted ? signal.reason : failureOf(error, status);
    } finally {
        callOff();
    }
}

interface TokenRequest {
    readonly headers: Record<string, string>;
    readonly body: URLSearchParams;
}

/** One POST over a connection of its own. No redirect is followed, nothing decoded. */
async function post(
    { client, responses, destroy }: Connection,
    { pathname, search }: URL,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
): Promise<Response> {
    try {
        const request = {
            method: 'POST',
            path: `${pathname}${search}`,
            headers: { ...headers, 'accept-encoding': 'identity' },
            body,
            signal,
        };
        responses.expect(() => {});
        const { statusCode, headers: answered, body: stream } = await client.request(request as Parameters<typeof client.request>[0]);
        const chunks: Buffer[] = [];
        let length = 0;
        for await (const chunk of stream as AsyncIterable<Buffer>) {
            chunks.push(chunk);
            length += chunk.length;
            if (length > MAX_ANSWER) {
                throw failed(`the token server answered with more than ${MAX_ANSWER} bytes`);
            }
        }
        if (statusCode < 200 || statusCode > 599) {
            throw failed(`the token server answered ${statusCode}`);
        }
        const type = answered['content-type'];
        return new Response(length === 0 ? null : Buffer.concat(chunks), {
            status: statusCode,
            headers: { 'content-type': typeof type === 'string' ? type : '' },
        });
    } finally {
        destroy();
    }
}

/** Outcomes that the token server has not caused, or that tell of it already. */
const OWN_CODES: ReadonlySet<string> = new Set(['interrupted', 'invalid_exporter', 'proxy_refused', 'proxy_failed', 'token_failed']);

/** The failure of an attempt without a token: who has caused it, and as much of the error as may be shown. */
function failureOf(error: unknown, status: number | null): CodedError<string> {
    if (error instanceof AttemptFailure || error instanceof ConnectionFailure || error instanceof ProxyFailure) {
        return OWN_CODES.has(error.code) ? error : failed(error.message);
    }
    if (status === null) {
        const code = codeOfError(error, 'connection_reset');
        const reason = `the token server broke off${codeNote(error)}`;
        return code === 'interrupted' ? new AttemptFailure(code, `No access token: ${reason}`) : failed(reason);
    }

    const said = error instanceof Error && 'error' in error && REFUSALS.has(error.error) ? `: ${error.error}` : '';
    const redirect = status >= 300 && status <= 399 ? '; redirects are not followed' : '';
    return failed(`the token server answered ${status}${said}${redirect}${status === 200 ? ', but with no token' : ''}`);
}

function failed(reason: string): AttemptFailure {
    return new AttemptFailure('token_failed', `No access token: ${reason}`);
}
