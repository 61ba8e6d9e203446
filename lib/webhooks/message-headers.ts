import { checkAdditionalHeaders } from './additional-headers.ts';
import type { HeaderPairs } from './exporter.ts';
import { type Signing, signatureHeaders } from './signature.ts';

export interface MessageHeadersOptions extends Signing {
    /** The event kind, for example `test`. */
    readonly kind: string;
    readonly additional: HeaderPairs;
}

/**
 * All headers of a message in order, but those that the sender adds for the connection (`Host`, `Connection`,
 * `Accept-Encoding: identity`, `Content-Length`). The exporter's additional ones come last and cannot stand in for ours.
 *
 * @throws ScanwireError `INVALID_INPUT` when a stored additional header breaks the rules: the exporter is invalid then.
 */
export function messageHeaders({ kind, additional, ...signing }: MessageHeadersOptions): HeaderPairs {
    const { headerPrefix, userAgent } = signing.vendor;
    return [
        [`${headerPrefix}-Event`, kind],
        ...signatureHeaders(signing),
        ['Content-Type', 'application/json; charset=UTF-8'],
        ['User-Agent', userAgent],
        ...checkAdditionalHeaders(additional, signing.vendor),
    ];
}
