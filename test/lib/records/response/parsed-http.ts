import { type HttpResponse, parseResponse, type ResponseLimits } from '../../../../lib/records/index.ts';

/** The response that these parts make up; text is ISO-8859-1. */
export function parsedHttp(parts: string | readonly (string | Uint8Array)[], limits?: ResponseLimits): HttpResponse {
    const response = parseResponse(bytesOf(parts), limits);
    if (!response.http) {
        throw new Error('This is not HTTP');
    }

    return response;
}

export function bytesOf(parts: string | readonly (string | Uint8Array)[]): Buffer {
    return Buffer.concat([parts].flat().map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
}
