import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { withBrackets } from '../addresses.ts';
import { CodedError } from '../errors.ts';
import { within } from '../within.ts';
import { ConnectionFailure, lateBy } from './connection-code.ts';
import { type HandshakeOptions, handshake, weakKey } from './handshake.ts';
import { hostOf, parseOutgoingUrl, portOf, type UrlFault } from './outgoing-url.ts';

/** A proxy that takes CONNECT (RFC 9110, 9.3.6). */
export interface EgressProxy {
    /** A name or an address, without brackets. */
    readonly host: string;
    readonly port: number;
    /** What the connection to the proxy itself is secured with; null for plain http. */
    readonly context: HandshakeOptions['context'] | null;
    /** Goes to the proxy alone. */
    readonly credentials: { readonly username: string; readonly password: string } | null;
    /** Whether it is given names, whose addresses then nobody vets, in place of vetted addresses. */
    readonly resolvesNames: boolean;
}

/** Why there is no way through a proxy. The message may be shown: it holds nothing that the proxy wrote. */
export class ProxyFailure extends CodedError<'proxy_refused' | 'proxy_failed'> {
    override readonly name = 'ProxyFailure';
    /** Whether another address of the same receiver may fare better. */
    readonly elsewhere: boolean;

    constructor(code: ProxyFailure['code'], message: string, elsewhere: boolean = false, cause?: unknown) {
        super(code, message, cause);
        this.elsewhere = elsewhere;
    }
}

const MAX_URL = 2048;

/** What the URL of a proxy says. */
export interface ProxyAddress extends Pick<EgressProxy, 'host' | 'port' | 'credentials'> {
    /** Without the credentials. */
    readonly url: URL;
}

/** Where the URL of a proxy leads, and by which credentials; or why it is none. A path says that somebody meant something else. */
export function parseProxyUrl(text: string): ProxyAddress | UrlFault | 'path' {
    const [, scheme = '', userinfo, rest = ''] = /^(https?:\/\/)(?:([^/?#@]*)@)?(.*)$/is.exec(text) ?? [];
    const url = parseOutgoingUrl(`${scheme}${rest}`, MAX_URL);
    if (typeof url === 'string') {
        return url;
    }
    if (url.pathname !== '/' || url.search !== '') {
        return 'path';
    }

    const credentials = userinfo === undefined ? null : credentialsIn(userinfo);
    return credentials === undefined ? 'credentials' : { url, host: hostOf(url), port: portOf(url), credentials };
}

/** Undefined for what is not encoded as it should be. */
function credentialsIn(userinfo: string): EgressProxy['credentials'] | undefined {
    const colon = userinfo.indexOf(':');
    const parts = colon === -1 ? [userinfo, ''] : [userinfo.slice(0, colon), userinfo.slice(colon + 1)];
    try {
        const [username = '', password = ''] = parts.map(decodeURIComponent);
        return username.includes(':') || /\p{Cc}/u.test(username + password) ? undefined : { username, password };
    } catch {
        return undefined;
    }
}

/** What is asked of a proxy. */
export interface TunnelOptions {
    readonly proxy: EgressProxy;
    /** Opens a vetted connection to the proxy itself. */
    readonly connect: (host: string, port: number) => Promise<Socket>;
    /** Where the tunnel is to end: an address, or a name for a proxy that resolves names. */
    readonly host: string;
    readonly port: number;
    /** Milliseconds for the handshake with the proxy, and once more for its answer. */
    readonly timeout: number;
    readonly signal: AbortSignal;
}

/** A connection through a proxy. @throws ProxyFailure, ConnectionFailure for a fault of this side, or the signal's reason. */
export async function tunnel(options: TunnelOptions): Promise<Socket> {
    const { proxy, timeout, signal } = options;
    const socket = await toProxy(options);
    const late = (by: number): Error => lateBy(by, new ProxyFailure('proxy_failed', `The proxy did not answer within ${timeout} ms`));
    try {
        const answered = headOf(socket);
        socket.write(requestFor(options, proxy));
        assertOpened(await within(answered, { timeout, late, signal }));
        return socket;
    } catch (error) {
        socket.destroy();
        throw error;
    }
}

/** A connection to the proxy itself. */
async function toProxy({ proxy: { host, port, context }, connect, timeout, signal }: TunnelOptions): Promise<Socket> {
    try {
        const socket = await connect(host, port);
        return context === null ? socket : await handshake({ socket, host, context, timeout, signal, onSecured: assertTrusted });
    } catch (error) {
        if (error instanceof ConnectionFailure && error.code !== 'interrupted') {
            throw new ProxyFailure('proxy_failed', `No connection to the proxy: ${error.message}`, false, error);
        }
        throw error;
    }
}

/** Before anything is written, credentials above all. */
function assertTrusted(socket: TLSSocket): void {
    const certificate = socket.getPeerX509Certificate();
    if (!socket.authorized || certificate === undefined) {
        throw new ProxyFailure('proxy_failed', 'The proxy presented a certificate that is not trusted');
    }

    const fault = weakKey(certificate);
    if (fault !== null) {
        throw new ProxyFailure('proxy_failed', `The proxy presented a certificate with ${fault}`);
    }
}

function requestFor({ host, port }: TunnelOptions, { credentials }: EgressProxy): string {
    const target = `${withBrackets(host)}:${port}`;
    const encoded = credentials && Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
    const authorization = encoded === null ? '' : `Proxy-Authorization: Basic ${encoded}\r\n`;
    return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`;
}

const MAX_HEAD = 16_384;
const END = '\r\n\r\n';
const STATUS = /^HTTP\/1\.[01] ([2-5]\d\d)[ \r]/;

/** The head of the proxy's answer, and what has come behind it. */
function headOf(socket: Socket): Promise<string> {
    return new Promise((resolve, reject) => {
        let head = '';
        const settle = (act: () => void): void => {
            socket.off('readable', onReadable).off('close', onClose).off('error', onClose);
            act();
        };
        const onClose = (): void =>
            settle(() => reject(new ProxyFailure('proxy_failed', 'The proxy closed the connection without an answer', true)));
        const onReadable = (): void => {
            for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
                head += chunk.toString('latin1');
            }
            if (head.includes(END)) {
                settle(() => resolve(head));
            } else if (head.length > MAX_HEAD) {
                settle(() => reject(new ProxyFailure('proxy_failed', `The proxy answered with more than ${MAX_HEAD} bytes`)));
            }
        };
        socket.on('readable', onReadable).once('close', onClose).once('error', onClose);
    });
}

function assertOpened(head: string): void {
    const status = Number(STATUS.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) {
        throw new ProxyFailure('proxy_failed', 'The proxy did not answer in HTTP/1.1');
    }
    if (status >= 300) {
        const why = status === 407 ? ': it wants other credentials' : '';
        throw new ProxyFailure('proxy_refused', `The proxy answered ${status}${why}`, status !== 407);
    }
    // The receiver says nothing before it is spoken to, so that what follows the head is no tunnel.
    if (head.indexOf(END) + END.length < head.length) {
        throw new ProxyFailure('proxy_failed', 'The proxy sent more than an answer');
    }
}
