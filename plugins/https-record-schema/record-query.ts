import Joi from 'joi';
import { HOST_PATTERN, IP_PATTERN } from '../../lib/records/address-patterns.ts';
import type { RecordQuery } from '../../lib/records/index.ts';
import { timestamp } from '../../lib/timestamp-text.ts';

/** What a listing can be asked for. */
export interface ListQuery {
    readonly ip?: string;
    readonly host?: string;
    /** ISO 8601, UTC. */
    readonly imported_from?: string;
    readonly imported_before?: string;
    readonly after?: number;
    readonly limit?: number;
}

export const listQuerySchema: Joi.ObjectSchema<ListQuery> = Joi.object<ListQuery, true>({
    ip: Joi.string().pattern(IP_PATTERN).messages({ 'string.pattern.base': '{{#label}} must be an IPv4 or IPv6 address' }),
    host: Joi.string().pattern(HOST_PATTERN).messages({ 'string.pattern.base': '{{#label}} must be a name or an IP address' }),
    imported_from: timestamp(),
    imported_before: timestamp(),
    after: Joi.number().integer().min(0),
    limit: Joi.number().integer().min(1),
});

/** As the store is asked. */
export function recordQuery({ ip, host, imported_from, imported_before, after, limit = Number.POSITIVE_INFINITY }: ListQuery): RecordQuery {
    return { ip, host, importedFrom: dateOf(imported_from), importedBefore: dateOf(imported_before), after, limit };
}

function dateOf(text: string | undefined): Date | undefined {
    return text === undefined ? undefined : new Date(text);
}
