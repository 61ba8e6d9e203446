import { ScanwireError } from '../errors.ts';

/** The result of one HTTPS request to an endpoint. It holds no time: the published schema has no field for one. */
export interface HttpsRecord {
    /** The response, base64 (standard alphabet, padded, no line breaks). */
    readonly data: string;
    /** Name or address of the endpoint. */
    readonly host: string;
    /** Address of the endpoint, IPv4 or IPv6. */
    readonly ip: string;
    /** 1 to 65535. */
    readonly port: number;
    /** HTTP path requested, begins with `/`. */
    readonly path?: string;
    /** Value of the `Host` header that selected a virtual host. */
    readonly vhost?: string;
    /** From the endpoint's certificate. */
    readonly subject?: { readonly OU?: string; readonly CN?: string };
}

/** A record with something else for the text in `data`. */
export type RecordOf<Data> = Omit<HttpsRecord, 'data'> & { readonly data: Data };

/** The JSON text of a record: one line without its ending, the keys always in the order of the specification. */
export function stringifyRecord({ data, host, ip, path, port, vhost, subject }: HttpsRecord): string {
    return JSON.stringify({ data, host, ip, path, port, vhost, subject: subject && { OU: subject.OU, CN: subject.CN } });
}

/** Longest line of a file of records by default, without its line ending: 1 MiB. */
export const MAX_LINE_BYTES = 1_048_576;
/** What that may be set to: a line is held whole, as text too. */
export const MAX_LINE_LIMIT: number = 256 * MAX_LINE_BYTES;

/**
 * @param subject Goes before the field in the message.
 * @throws ScanwireError `MISCONFIGURED` for a limit of bytes outside of 1 to {@link MAX_LINE_LIMIT}.
 */
export function assertByteLimit(limit: number, subject: string, field: string): void {
    if (!(typeof limit === 'number' && limit >= 1 && limit <= MAX_LINE_LIMIT)) {
        throw new ScanwireError('MISCONFIGURED', `${subject}: ${field} must be a number from 1 to ${MAX_LINE_LIMIT}`, { field });
    }
}
