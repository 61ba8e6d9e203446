import type { HttpsRecord } from './record.ts';
import { parseResponse } from './response/parse-response.ts';
import type { ParsedResponse, ResponseLimits } from './response/parsed-response.ts';

/** A record with its response read. What the record leaves out is null. */
export interface DecodedRecord {
    readonly host: string;
    readonly ip: string;
    readonly port: number;
    readonly path: string | null;
    readonly vhost: string | null;
    readonly subject: { readonly OU?: string; readonly CN?: string } | null;
    readonly response: ParsedResponse;
}

/** Reads the response in a record that passes the strict profile. Never throws. */
export function decodeRecord(record: HttpsRecord, limits: ResponseLimits = {}): DecodedRecord {
    return decoded(record, Buffer.from(record.data, 'base64'), limits);
}

/** The same, of a record whose `data` is at hand as bytes. */
export function decoded(record: Omit<HttpsRecord, 'data'>, data: Buffer, limits: ResponseLimits): DecodedRecord {
    const { host, ip, port, path = null, vhost = null, subject = null } = record;
    return { host, ip, port, path, vhost, subject, response: parseResponse(data, limits) };
}
