/** Digests of what is sent, as `Content-Digest` of RFC 9530 has them: SHA-256, in base64. */
import { createHash } from 'node:crypto';
import { timeSlice } from './clock.ts';
import { ScanwireError } from './errors.ts';
import type { Rereadable } from './gunzip.ts';

/** What the header is called in refusals. */
const FIELD = 'Content-Digest';

const MEMBER = /(?:^|,)[ \t]*sha-256=([^,;]*)/g;
const SHA256 = /^:([A-Za-z0-9+/]{43}=):[ \t]*$/;

/**
 * The SHA-256 that the value of a header says, in base64; undefined where it has none. Digests by other algorithms are left alone, as the RFC allows.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `Content-Digest`, for what is no SHA-256.
 */
export function sha256In(header: string): string | undefined {
    const member = [...header.matchAll(MEMBER)].at(-1)?.[1];
    const sha256 = member?.match(SHA256)?.[1];
    if (member !== undefined && sha256 === undefined) {
        throw new ScanwireError('INVALID_INPUT', `${FIELD} must look like sha-256=:…: with the SHA-256 of the body in base64`, {
            field: FIELD,
        });
    }

    // Of the last character two bits say nothing.
    return sha256 && Buffer.from(sha256, 'base64').toString('base64');
}

/** The SHA-256 of all bytes, in base64. */
export async function sha256Of(source: AsyncIterable<Uint8Array>): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of source) {
        hash.update(chunk);
    }
    return hash.digest('base64');
}

/** Bytes that are known by their digest. They end with an error where they have another one. */
export interface Digested extends AsyncIterable<Uint8Array> {
    /** Reads what is left of them. @throws ScanwireError as they do; the reason of the signal. */
    arrived(signal?: AbortSignal): Promise<void>;
}

/**
 * The same bytes, to be read once.
 *
 * @param sha256 In base64.
 * @throws ScanwireError `INVALID_INPUT`, field `Content-Digest`, at their end, when they have another digest.
 */
export function digested(source: AsyncIterable<Uint8Array> | Rereadable, sha256: string): Digested {
    const bytes = checked(source, sha256);
    return Object.assign(bytes, 'again' in source && { again: () => source.again() }, {
        async arrived(signal?: AbortSignal) {
            const yieldIfDue = timeSlice();
            for await (const _ of bytes) {
                signal?.throwIfAborted();
                await yieldIfDue();
            }
        },
    });
}

async function* checked(source: AsyncIterable<Uint8Array>, sha256: string): AsyncGenerator<Uint8Array, void, undefined> {
    const hash = createHash('sha256');
    for await (const chunk of source) {
        hash.update(chunk);
        yield chunk;
    }

    if (hash.digest('base64') !== sha256) {
        throw new ScanwireError('INVALID_INPUT', `${FIELD} is not that of the body: it was cut off, or has changed on its way`, {
            field: FIELD,
        });
    }
}
