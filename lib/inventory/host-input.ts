import Joi from 'joi';
import { canonicalAddress } from '../addresses.ts';
import { compiled, type QuickCheck, UNSURE } from '../compiled-schema.ts';
import { ScanwireError } from '../errors.ts';
import { checked, isObject, STORABLE, storableText } from '../schema-validation.ts';
import { checkedClosedPorts } from './closed-ports.ts';
import { PROTOCOLS, SERVICE_STATES } from './fields.ts';
import { checkedFindings, findingSchemas, MAX_FINDINGS } from './findings.ts';
import { byHostField, HOST_STATES, type HostFieldKind, type HostInput, normaliseArch, type ServiceInput } from './host.ts';
import { MAX_TEXT } from './long-text.ts';

/** Every port once with each protocol. */
const MAX_SERVICES = 2 * 65_535;
/** What is below a host. */
type Below = 'services' | 'notes' | 'vulns';

/** How much of it one may have. */
const MOST_BELOW: Readonly<Record<Below, number>> = { services: MAX_SERVICES, notes: MAX_FINDINGS, vulns: MAX_FINDINGS };
/** Every other port. */
const MAX_RANGES = 32_768;
const MAX_INT32 = 2_147_483_647;

const text = (): Joi.StringSchema => storableText().allow('').max(MAX_TEXT);
const nullableText = (): Joi.StringSchema => text().allow(null);
/** Kept by the server; accepted so that a row of the API can be imported again, and ignored. */
const serverOwned = (): Joi.AnySchema => Joi.any().strip();

const serviceSchema: Joi.ObjectSchema<ServiceInput> = Joi.object({
    id: serverOwned(),
    host_id: serverOwned(),
    created_at: serverOwned(),
    updated_at: serverOwned(),
    port: Joi.number().integer().min(1).max(65535).required(),
    proto: Joi.string()
        .valid(...PROTOCOLS)
        .default('tcp'),
    state: Joi.string()
        .valid(...SERVICE_STATES)
        .default('open'),
    name: text().empty(null),
    info: nullableText(),
    guessed_name: storableText(),
});

const SCHEMAS: Readonly<Record<HostFieldKind, () => Joi.Schema>> = {
    id: serverOwned,
    time: serverOwned,
    count: serverOwned,
    address: () => Joi.string().max(255).required(),
    // Without a name the host keeps the one it has, or bears its address.
    name: () => text().empty(Joi.valid('', null)),
    state: () =>
        Joi.string()
            .valid(...HOST_STATES)
            .empty(null),
    text: nullableText,
    nullableText,
    foreignId: () => Joi.number().integer().min(0).max(MAX_INT32).allow(null),
};

const hostInputSchema: Joi.ObjectSchema<HostInput> = Joi.object({
    ...byHostField(SCHEMAS),
    services: Joi.array().items(serviceSchema).max(MAX_SERVICES),
    // Looked at by hand: a scan closes hundreds of ranges on each host.
    closed_ports: Joi.object(Object.fromEntries(PROTOCOLS.map((proto) => [proto, Joi.array().max(MAX_RANGES)]))),
    if_known: Joi.boolean(),
    ...findingSchemas(text, serverOwned),
})
    .label('host')
    .required();

/** The fields that go out as text, never as null. */
const TEXT_FIELDS = Object.keys(byHostField({ text: (field) => field })) as readonly (keyof HostInput)[];

/**
 * One host of an import: in the shape of the API, of which only `address` is required. The address becomes canonical and an
 * IPv6 zone moves to `scope`, an unknown arch moves to `detected_arch`, a null that goes out as text becomes `''`, and fields
 * that the server owns (ids, times, counters) are dropped. A field that is absent stays absent.
 *
 * @throws ScanwireError `INVALID_INPUT` naming the first field that is unknown or breaks a rule.
 */
export function normaliseHost(input: unknown): HostInput {
    // Joi tells that there are too many once it has looked at each.
    for (const [field, given] of isObject(input) ? Object.entries(input) : []) {
        if (Array.isArray(given) && Object.hasOwn(MOST_BELOW, field)) {
            refuseTooMany(field as Below, given.length);
        }
    }

    const host = withoutNullTexts(checkedHost(input));
    refuseRepeatedServices(host.services ?? []);
    const { address, scope } = canonicalAddress(host.address);
    const closed = host.closed_ports === undefined ? {} : { closed_ports: checkedClosedPorts(host.closed_ports) };
    const services = host.services === undefined ? {} : { services: host.services.map(withBoth) };
    const findings = checkedFindings({ ...host, ...services });
    return { ...host, ...normaliseArch(host), ...services, ...findings, address, ...(scope !== null && { scope }), ...closed };
}

/** @throws ScanwireError `INVALID_INPUT` where a host has more of these below it than it may. */
export function refuseTooMany(field: Below, count: number): void {
    if (count > MOST_BELOW[field]) {
        throw new ScanwireError('INVALID_INPUT', `${field} must contain less than or equal to ${MOST_BELOW[field]} items`, { field });
    }
}

/** Made by the first host: to compile a schema takes longer than to check some hosts by it. */
let quickCheck: QuickCheck | null = null;

function checkedHost(input: unknown): HostInput {
    quickCheck ??= compiled(hostInputSchema.describe(), [STORABLE]);
    const host = quickCheck(input);
    return host === UNSURE ? checked(hostInputSchema, input) : (host as HostInput);
}

/** The schema lets null pass as text, against the type. */
function withoutNullTexts(host: HostInput): HostInput {
    const nulls = TEXT_FIELDS.filter((field) => host[field] === null);
    return nulls.length === 0 ? host : { ...host, ...Object.fromEntries(nulls.map((field) => [field, ''])) };
}

/** A name and an info belong together: they come from what the service has said. */
function withBoth(service: ServiceInput): ServiceInput {
    const { name, info } = service;
    return name === undefined && info === undefined ? service : { ...service, name: name ?? '', info: info ?? null };
}

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
