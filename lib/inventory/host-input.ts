import Joi from 'joi';
import { canonicalAddress } from '../addresses.ts';
import { checked } from '../checked.ts';
import { ScanwireError } from '../errors.ts';

import { type HostInput, normaliseArch, type ServiceInput } from './host.ts';

/** Longest text of one field, in UTF-16 code units. */
const MAX_TEXT = 65_536;
/** Every port once with each protocol. */
const MAX_SERVICES = 2 * 65_535;
const MAX_INT32 = 2_147_483_647;

// PostgreSQL stores no NUL, and a lone surrogate has no UTF-8.
const STORABLE = /^[^\0\p{Cs}]*$/u;

const text = (): Joi.StringSchema =>
    Joi.string()
        .allow('')
        .max(MAX_TEXT)
        .pattern(STORABLE)
        .messages({ 'string.pattern.base': '{{#label}} must not contain NUL or half a surrogate pair' });

const optionalText = (): Joi.StringSchema => text().allow(null);
/** Kept by the server; accepted so that an answer of the API can be imported again, and ignored. */
const serverOwned = (): Joi.AnySchema => Joi.any().strip();

/** These go out as text, never as null. */
const TEXT_FIELDS = ['mac', 'os_name', 'os_flavor', 'os_sp', 'purpose'] as const;

const serviceSchema: Joi.ObjectSchema<ServiceInput> = Joi.object({
    id: serverOwned(),
    host_id: serverOwned(),
    created_at: serverOwned(),
    updated_at: serverOwned(),
    port: Joi.number().integer().min(1).max(65535).required(),
    proto: Joi.string().valid('tcp', 'udp').default('tcp'),
    state: Joi.string().valid('open', 'closed', 'filtered', 'unknown').default('open'),
    name: text().empty(null).default(''),
    info: optionalText().default(null),
});

const hostInputSchema: Joi.ObjectSchema<HostInput> = Joi.object({
    id: serverOwned(),
    workspace_id: serverOwned(),
    created_at: serverOwned(),
    updated_at: serverOwned(),
    address: Joi.string().max(255).required(),
    mac: optionalText(),
    comm: optionalText(),
    // Without a name the host keeps the one it has, or bears its address.
    name: text().empty(Joi.valid('', null)),
    state: Joi.string().valid('alive', 'down', 'unknown').empty(null),
    os_name: optionalText(),
    os_flavor: optionalText(),
    os_sp: optionalText(),
    os_lang: optionalText(),
    arch: optionalText(),
    purpose: optionalText(),
    info: optionalText(),
    comments: optionalText(),
    scope: optionalText(),
    virtual_host: optionalText(),
    note_count: serverOwned(),
    vuln_count: serverOwned(),
    service_count: serverOwned(),
    host_detail_count: serverOwned(),
    exploit_attempt_count: serverOwned(),
    cred_count: serverOwned(),
    nexpose_data_asset_id: Joi.number().integer().min(0).max(MAX_INT32).allow(null),
    history_count: serverOwned(),
    detected_arch: optionalText(),
    services: Joi.array().items(serviceSchema).max(MAX_SERVICES),
})
    .label('host')
    .required();

/**
 * One host of an import: in the shape of the API, of which only `address` is required. The address becomes canonical and an
 * IPv6 zone moves to `scope`, an unknown arch moves to `detected_arch`, a null that goes out as text becomes `''`, and fields
 * that the server owns (ids, times, counters) are dropped. A field that is absent stays absent.
 *
 * @throws ScanwireError `INVALID_INPUT` naming the first field that is unknown or breaks a rule.
 */
export function normaliseHost(input: unknown): HostInput {
    const host: Mutable<HostInput> = checked(hostInputSchema, input);
    for (const field of TEXT_FIELDS) {
        // The schema lets null pass here, against the type.
        if (host[field] === null) {
            host[field] = '';
        }
    }

    refuseRepeatedServices(host.services ?? []);
    const { address, scope } = canonicalAddress(host.address);
    return { ...host, ...normaliseArch(host), address, ...(scope === null ? {} : { scope }) };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A port is one service per protocol; which of two was meant, nobody could say. */
function refuseRepeatedServices(services: readonly ServiceInput[]): void {
    const seen = new Set<string>();
    for (const [index, { port, proto }] of services.entries()) {
        const key = `${port}/${proto}`;
        if (seen.has(key)) {
            throw new ScanwireError('INVALID_INPUT', `services[${index}] repeats a port and protocol`, { field: `services[${index}]` });
        }

        seen.add(key);
    }
}
