import { ScanwireError } from '../../errors.ts';
import type { KeyRing, SealedText } from '../../keys/key-ring.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import type { FormattedMessage } from './formatted-message.ts';
import { type Signing, signatureHeaders, type Vendor } from './signature.ts';

/** Headers by name and value, in their order. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Additional headers in a change: null keeps the value of the existing header of that name, whatever its case. */
export type HeaderChanges = readonly (readonly [name: string, value: string | null])[];

/** Headers that the sender adds for the connection. */
export const SENDER_HEADERS = ['Host', 'Connection', 'Accept-Encoding', 'Content-Length'] as const;

/**
 * The headers of a message in order, but those that are added when it is sent: by the sender {@link SENDER_HEADERS}, and after all others `traceparent` and `Authorization`, where they go out. Those of the format and
 * the exporter's additional ones come last here, and together keep the rules of additional headers: neither can stand in for ours or for the other.
 *
 * @param kind The event kind, for example `test`.
 * @param format What the body is, and the headers that belong to it.
 * @throws ScanwireError `INVALID_INPUT` when a stored header breaks the rules: the message cannot be sent then.
 */
export function messageHeaders(
    kind: string,
    signing: Signing,
    { contentType, headers }: Pick<FormattedMessage, 'contentType' | 'headers'>,
    additional: HeaderPairs,
): HeaderPairs {
    const { headerPrefix, userAgent } = signing.vendor;
    return [
        [`${headerPrefix}-Event`, kind],
        ...signatureHeaders(signing),
        ['Content-Type', contentType],
        ['User-Agent', userAgent],
        // What is stored as no list is left in it as it is, and refused.
        ...checkAdditionalHeaders([headers, additional].flat(), signing.vendor),
    ];
}

/** Maximum number of additional headers, with those of the format. */
export const MAX_HEADERS = 20;
const MAX_NAME = 64;
const MAX_VALUE_BYTES = 4096;
const MAX_TOTAL_BYTES = 8192;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Headers by which proxies and content networks inform the server behind them. The tokens of Cloudflare Access are no such headers: users may send them. */
const PROXY_NAMES = new RegExp(
    `^(${[
        '(x-)?forwarded(-.*)?',
        'via|cdn-loop',
        'x-(original|rewrite|remote)-.*|remote-.*|x-host',
        '(x-)?(real|client|true-client|cluster-client|originating|proxyuser)-ip|x-client-cert.*',
        'cf-(?!access-).*|fastly-(client-ip|ff|ssl)|x-envoy-.*|x-amzn-.*|x-amz-cf-.*|x-appengine-.*',
        'x-azure-(clientip|socketip|fdid|ref)|x-arr-.*|x-ms-client-principal.*',
    ].join('|')})$`,
);

/** Headers that the sender writes itself, and those that belong to a connection. Either kind would change where the message goes or where it ends. */
const SENDER_NAMES = /^(host|accept-encoding|content-length)$/;
const CONNECTION_NAMES = /^(connection|keep-alive|te|trailers?|transfer-encoding|upgrade|http2-settings|proxy-.*)$/;

/** Names are matched as {@link comparable} writes them. */
const REFUSED: readonly { readonly names: RegExp; readonly why: string }[] = [
    { names: SENDER_NAMES, why: 'is set by the sender' },
    { names: /^(user-agent|date|content-.*|digest|repr-digest|want-.*digest)$/, why: 'is set by the sender' },
    { names: CONNECTION_NAMES, why: 'belongs to the connection, not to the message' },
    // CGI-like receivers turn this header into the variable HTTP_PROXY.
    { names: /^proxy$/, why: "would lead the receiver's own requests elsewhere" },
    { names: /^expect$/, why: 'would make the receiver hold back its response' },
    { names: /^webhook-|(?:^|-)(?:signatures$|(?:signature|hmac)(?:-|$))/, why: 'is reserved for signatures' },
    { names: PROXY_NAMES, why: 'is for proxies: it would tell the receiver a wrong origin' },
    { names: /^x-(http-)?method(-override)?$/, why: 'would turn the POST into another method' },
    {
        names: /^(?:metadata(?:-|$)|x-(?:(?:google|aws-ec2|aliyun-ecs|tencent)-)?metadata-|x-identity-header$)/,
        why: 'opens cloud metadata services',
    },
];

/**
 * The additional headers as they are sent: blanks around values are dropped, all else stays. Run at save and
 * again at send.
 *
 * A name is a token of at most 64 characters, not refused by the list above and listed once, whatever its case; a value is 1 to
 * 4,096 bytes of visible ASCII and spaces; at most 20 headers, 8 KiB in all, as they stand on the wire.
 *
 * @param vendor Its own header prefix is refused as well.
 * @throws ScanwireError `INVALID_INPUT`, field `headers`, with the name of the header and the rule, never with a value.
 */
export function checkAdditionalHeaders(pairs: HeaderPairs, vendor: Vendor): HeaderPairs {
    if (!Array.isArray(pairs)) {
        throw refused('Headers must be a list of names and values');
    }

    if (pairs.length > MAX_HEADERS) {
        throw refused(`Headers must be at most ${MAX_HEADERS}`);
    }

    const seen = new Set<string>();
    const own = `${vendor.headerPrefix.toLowerCase()}-`;
    const result = (pairs as readonly unknown[]).map((pair, index): [string, string] => {
        const [name, value] = textPair(pair, index);
        checkName(name, index, own);
        const lower = name.toLowerCase();
        if (seen.has(lower)) {
            throw refused(`Header ${name} is given twice`);
        }

        seen.add(lower);
        return [name, checkedValue(name, value)];
    });

    const total = result.reduce((sum, [name, value]) => sum + name.length + value.length + ': \r\n'.length, 0);
    if (total > MAX_TOTAL_BYTES) {
        throw refused(`Headers must be at most ${MAX_TOTAL_BYTES} bytes in all`);
    }

    return result;
}

/** Whether a message must not have this header, since the sender writes it, or it belongs to the connection. */
export function isSenderHeader(name: string): boolean {
    const compared = comparable(name);
    return SENDER_NAMES.test(compared) || CONNECTION_NAMES.test(compared);
}

/** In lower case, with `_` as `-`: CGI-like receivers cannot tell the two apart. */
function comparable(name: string): string {
    return name.toLowerCase().replaceAll('_', '-');
}

function textPair(pair: unknown, index: number): readonly [string, string] {
    const [name, value, ...rest] = Array.isArray(pair) ? pair : [];
    if (typeof name !== 'string' || typeof value !== 'string' || rest.length > 0) {
        throw refused(`Header ${index + 1} must be a name and a value`);
    }

    return [name, value];
}

function checkName(name: string, index: number, own: string): void {
    if (!TOKEN.test(name) || name.length > MAX_NAME) {
        throw refused(`Header ${index + 1} has a name that is not 1 to ${MAX_NAME} letters, digits and the signs of an HTTP token`);
    }

    const compared = comparable(name);
    if (compared.startsWith(own) || compared === own.slice(0, -1)) {
        throw refused(`Header ${name} is set by the sender`);
    }

    const rule = REFUSED.find(({ names }) => names.test(compared));
    if (rule !== undefined) {
        throw refused(`Header ${name} ${rule.why}`);
    }
}

function checkedValue(name: string, value: string): string {
    const trimmed = value.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '');
    if (trimmed === '') {
        throw refused(`Header ${name} must have a value`);
    }

    if (!/^[\x20-\x7e]+$/.test(trimmed)) {
        throw refused(`Header ${name} must have a value of visible ASCII characters and spaces`);
    }

    if (trimmed.length > MAX_VALUE_BYTES) {
        throw refused(`Header ${name} must have a value of at most ${MAX_VALUE_BYTES} bytes`);
    }

    return trimmed;
}

function refused(message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field: 'headers' });
}

/** What is stored of the additional headers of an exporter, once they are checked: their names, and all of them sealed. */
export function sealHeaders(
    exporterId: string,
    additional: HeaderPairs,
    { keyRing, vendor }: { readonly keyRing: KeyRing; readonly vendor: Vendor },
): Pick<StoredExporter, 'headerNames' | 'sealedHeaders'> {
    const pairs = checkAdditionalHeaders(additional, vendor);
    const sealed = keyRing.seal(JSON.stringify(pairs), headersContext(exporterId));
    return { headerNames: pairs.map(([name]) => name), sealedHeaders: pairs.length === 0 ? null : sealed };
}

/**
 * The additional headers after a change, with the values that the change keeps.
 *
 * @throws ScanwireError `INVALID_INPUT` for a value that is to be kept of a header that there is not.
 */
export function changedHeaders(before: StoredExporter, changes: HeaderChanges, keyRing: KeyRing): HeaderPairs {
    if (!keepsHeaders(changes)) {
        return changes as HeaderPairs;
    }

    const kept = new Map(unsealHeaders(before, keyRing).map(([name, value]) => [name.toLowerCase(), value]));
    return changes.map(([name, value], index): readonly [string, string] => {
        const given = value ?? kept.get(name.toLowerCase());
        if (given === undefined) {
            throw refused(`Header ${index + 1} has no value that could be kept`);
        }
        return [name, given];
    });
}

/** Whether the change keeps the value of any header. */
export function keepsHeaders(changes: HeaderChanges): boolean {
    return changes.some(([, value]) => value === null);
}

/** The sealed headers of an exporter: one text, or none. */
export function sealedHeaders({ id, sealedHeaders: sealed }: StoredExporter): readonly SealedText[] {
    return sealed === null ? [] : [{ sealed, context: headersContext(id) }];
}

/** The additional headers of an exporter with their values. @throws ScanwireError `UNSEALABLE`. */
export function unsealHeaders(exporter: StoredExporter, keyRing: KeyRing): HeaderPairs {
    const [text] = sealedHeaders(exporter);
    return text === undefined ? [] : JSON.parse(keyRing.open(text.sealed, text.context));
}

function headersContext(exporterId: string): string {
    return `exporter:${exporterId}:headers`;
}
