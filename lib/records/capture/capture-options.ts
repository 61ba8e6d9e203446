import Joi from 'joi';
import { checked } from '../../checked.ts';
import type { EgressGuard } from '../../egress/egress-guard.ts';
import type { Lookup } from '../../egress/resolver.ts';
import { implementing } from '../../implementing.ts';
import { VERSION } from '../../version.ts';
import { MAX_ANSWER_BYTES } from './max-answer-bytes.ts';

/** The limits of one capture, and what it says of itself. Times in milliseconds. */
export interface CaptureLimits {
    /** For the name. 5,000 by default. */
    readonly dnsTimeout: number;
    /** For the connection, and once more for its TLS handshake. 5,000 by default. */
    readonly connectTimeout: number;
    /** For all of it; an answer that takes longer is cut. 15,000 by default. */
    readonly timeout: number;
    /** A longer answer is cut. By default, and at most, {@link MAX_ANSWER_BYTES}. */
    readonly maxBytes: number;
    /** Value of the `User-Agent` header. `scanwire/` and the version by default. */
    readonly userAgent: string;
    /** Value of an `Accept-Encoding` header, for example `gzip`; none is sent by default, and most servers then do not pack. */
    readonly acceptEncoding?: string;
}

/** Who may be called, and the limits of a capture where they differ from the defaults. */
export interface CaptureOptions extends Partial<CaptureLimits> {
    /** Which addresses may be called. */
    readonly guard: EgressGuard;
    /** Stands in for `dns.lookup`. */
    readonly lookup?: Lookup;
}

const milliseconds = (byDefault: number): Joi.NumberSchema => Joi.number().integer().min(1).max(3_600_000).default(byDefault);
const headerValue = (): Joi.StringSchema =>
    Joi.string()
        .max(256)
        .pattern(/^[!-~](?:[ -~]*[!-~])?$/)
        .messages({ 'string.pattern.base': '{{#label}} must be printable ASCII' });

const optionsSchema = Joi.object<CaptureLimits & Pick<CaptureOptions, 'guard'>, true>({
    guard: implementing<EgressGuard>('vet', 'vetHost').required(),
    dnsTimeout: milliseconds(5000),
    connectTimeout: milliseconds(5000),
    timeout: milliseconds(15_000),
    maxBytes: Joi.number().integer().min(1).max(MAX_ANSWER_BYTES).default(MAX_ANSWER_BYTES),
    userAgent: headerValue().default(`scanwire/${VERSION}`),
    acceptEncoding: headerValue(),
});

/** @throws ScanwireError `MISCONFIGURED` for limits that cannot be, and without a guard. */
export function captureLimits(given: Omit<CaptureOptions, 'lookup'>): CaptureLimits {
    const { guard: _, ...limits } = checked(optionsSchema, given, { subject: 'capture options', code: 'MISCONFIGURED' });
    return limits;
}
