import type { OutcomeCode } from './outcome.ts';

/** An outcome in words, for whoever has to do something about it. */
export interface OutcomeWords {
    /** One sentence, without its full stop. */
    readonly meaning: string;
    /** What to do about it, in the same form; null where nothing is to be done. */
    readonly advice: string | null;
}

/** What each code means, and what to do about it. `docs/outcomes.md` says the same, and so do the admin console and the doctor. */
export const OUTCOME_WORDS: { readonly [Code in OutcomeCode]: OutcomeWords } = {
    delivered: words('The receiver answered with a 2xx status', null),
    interrupted: words(
        "The attempt ended on the sender's side before its result was known, because its process stopped or ran out of files, ports or memory",
        'Nothing but wait: it is tried again by itself, and the receiver may get the same message twice',
    ),
    invalid_exporter: words(
        "The exporter's URL, one of its headers or certificates cannot be used; it is not tried again before that is changed",
        "Correct the exporter's URL, additional headers or certificates",
    ),
    invalid_message: words(
        'The message of this one event could not be made in the format of the exporter, and nothing was sent; the detail says why. It is no failure of the exporter',
        "Correct the exporter's template or format for later events: a replay sends what was made when the event was accepted",
    ),
    address_blocked: words(
        'The host is, or resolves to, an address that may not be called; nothing was sent. An address in the URL stays blocked, a name is tried again',
        "Let the name resolve to public addresses only, or open the address in this deployment's egress rules",
    ),
    dns_not_found: words('The host name does not exist or has no address', 'Correct the name in the URL, or ask who runs its name servers'),
    dns_failed: words('The name servers of the host answered with a failure', 'Ask who runs the name servers of the host to repair them'),
    dns_timeout: words(
        'The host name was not resolved in time, which is 5 seconds by default',
        'Look whether the name servers of this machine answer; if they do, ask who runs those of the host',
    ),
    connect_refused: words('Nothing listens on the port', 'Start the receiver, or correct the port in the URL'),
    connect_timeout: words(
        'There was no connection in time, which is 5 seconds by default',
        'Let this machine through the firewall of the receiver, and look whether it runs',
    ),
    connect_failed: words(
        'There is no way to the address, for example no route to it',
        'Repair the network, or withdraw DNS records of addresses that cannot be reached',
    ),
    connection_reset: words(
        'The connection was closed before an answer came; the message may have been read',
        "Look into the receiver's log for crashes and time-outs",
    ),
    tls_self_signed: words(
        'The certificate is self-signed, or its chain ends in a self-signed root that is not trusted',
        'Use a certificate of a public authority, give the exporter the root as ca, or set it to trust self-signed certificates',
    ),
    tls_unknown_ca: words(
        'The chain of the certificate does not lead to a trusted authority',
        "Let the receiver present all intermediate certificates, or give the exporter a private authority's root as ca",
    ),
    tls_expired: words('The certificate, or one above it, has expired', 'Renew the certificate of the receiver'),
    tls_not_yet_valid: words(
        'The certificate, or one above it, is not valid yet',
        "Correct the certificate's dates, or the clocks of both machines",
    ),
    tls_name_mismatch: words(
        'The certificate is for another host name',
        'Give the receiver a certificate with the host name of the URL, or correct the name in the URL',
    ),
    tls_client_cert_required: words(
        'The receiver demands a client certificate, and the exporter has none, or one that the receiver refuses',
        'Give the exporter one that the receiver trusts, or let the receiver check the signature instead',
    ),
    tls_failed: words(
        'The TLS handshake failed or took too long for another reason, for example an RSA key of less than 2,048 bits',
        "Let the receiver offer TLS 1.2 or later with usual ciphers, and look into its log; if it speaks plain http, correct the URL's scheme or port",
    ),
    proxy_refused: words(
        "The exporter's proxy would not open a way to the receiver; the detail has its status: 407 wants other credentials, 502 or 503 often means that it does not reach the receiver",
        "Correct the exporter's proxy, or let the proxy through to the receiver",
    ),
    proxy_failed: words(
        "The exporter's proxy could not be reached, is not trusted, or did not answer as a proxy does",
        "Correct the exporter's proxy, or repair it",
    ),
    token_failed: words(
        "The exporter's token server gave no access token, so that nothing was sent; the detail says how it answered",
        "Repair the token server, or correct the exporter's client, its secret or its scope",
    ),
    headers_timeout: words(
        'The message was sent, but no whole head of an answer came in time, which is 15 seconds for all of it by default',
        'Let the receiver answer first and do its work later, and look at its log',
    ),
    timeout: words(
        'The time for all of it, 15 seconds by default, had passed before the message was sent',
        'Let the receiver read requests whole and at once, and accept more connections',
    ),
    protocol_error: words(
        'What came back is not HTTP/1.1: another protocol, a broken head or more than 16 KiB of headers',
        'Correct scheme and port of the URL, or repair the receiver or the proxy in front of it',
    ),
    redirect_refused: words('The answer was a redirect, which is not followed', 'Give the exporter the final URL'),
    gone: words(
        'The answer was 410 Gone, which stops the exporter unless it is to a test',
        'Start the exporter again if that was not meant',
    ),
    rate_limited: words(
        'The answer was 429: the receiver wants fewer messages at a time',
        'Give the exporter a rate, or let the receiver send Retry-After or allow more',
    ),
    client_error: words(
        'The receiver refused the message with a 4xx status',
        'Correct the URL, the authentication or the additional headers, or what the receiver accepts',
    ),
    server_error: words(
        'The receiver failed, with a 5xx status',
        'Repair the receiver: its log says what failed; failed deliveries can be replayed then',
    ),
    unexpected_status: words(
        'The answer had a status that says neither success nor failure, for example 304',
        'Let the receiver answer with a 2xx status',
    ),
};

/** What is wrong, where the status of a `client_error` tells it. */
export type ClientError = 'credentials' | 'path' | 'size';

/** What `client_error` means in each of these cases. `docs/outcomes.md` says the same. */
export const CLIENT_ERROR_WORDS: { readonly [What in ClientError]: OutcomeWords } = {
    credentials: words(
        'The receiver wants credentials or a header that it did not get, or does not accept those that it got',
        'Give the exporter the credentials, or the additional header, that the receiver wants',
    ),
    path: words(
        'The receiver has nothing at the path of the URL, or takes no POST there',
        'Correct the path of the URL, or let the receiver take POST there',
    ),
    size: words(
        'The message is too large for the receiver',
        'Let the receiver take larger messages, or give the exporter a format that says less, such as a template',
    ),
};

/** The statuses that tell it. */
export const CLIENT_ERRORS: ReadonlyMap<number | null, ClientError> = new Map([
    [401, 'credentials'],
    [403, 'credentials'],
    [404, 'path'],
    [405, 'path'],
    [413, 'size'],
]);

/** The words of one language. */
export interface OutcomeTexts {
    readonly outcomes: typeof OUTCOME_WORDS;
    readonly clientErrors: typeof CLIENT_ERROR_WORDS;
}

const ENGLISH: OutcomeTexts = { outcomes: OUTCOME_WORDS, clientErrors: CLIENT_ERROR_WORDS };

/** What an outcome means and what to do about it. @param status Of the answer, null where none came. */
export function outcomeWords(code: OutcomeCode, status: number | null, { outcomes, clientErrors }: OutcomeTexts = ENGLISH): OutcomeWords {
    const what = code === 'client_error' ? CLIENT_ERRORS.get(status) : undefined;
    return what === undefined ? outcomes[code] : clientErrors[what];
}

function words(meaning: string, advice: string | null): OutcomeWords {
    return { meaning, advice };
}
