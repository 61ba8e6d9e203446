/** The methods `db.*` by which the framework's own MCP server reads, in JSON-RPC 2.0. */
import Joi from 'joi';
import { type Interval, isWithinOne, mergedIntervals } from '../../lib/intervals.ts';
import { referencesOf } from '../../lib/inventory/findings.ts';
import { checked, count } from '../../lib/schema-validation.ts';
import { askedAddresses, MAX_ADDRESSES } from './asked-addresses.ts';
import { type MoreName, type MoreSource, moreRows } from './more-lists.ts';
import { type Asked, type ListName, listed, type Reader, type Row, type WholeInventory } from './rows.ts';
import { type Relations, related } from './shown-rows.ts';

/** A call that can be answered. */
export interface Call {
    /** What the result is called, for example `hosts`. */
    readonly name: string;
    /** The rows of the result, in batches. */
    readonly rows: AsyncIterable<readonly object[]>;
    /** Whether there is a list that they are read from. */
    readonly reads: boolean;
}

/** A call that cannot be answered. */
export interface RpcError {
    readonly code: number;
    readonly message: string;
}

interface Options {
    readonly workspace?: string;
    readonly limit: number;
    readonly offset: number;
    readonly only_up: boolean;
    readonly addresses?: readonly string[];
    readonly address?: string;
    readonly proto?: string;
    readonly ports?: string | number;
    readonly names?: string;
    readonly ntype?: string;
}

const LIMIT = 100;
const MAX_COUNT = 2_147_483_647;

const upTo32Bits = (byDefault: number): Joi.NumberSchema => count(0).max(MAX_COUNT).default(byDefault);
const text = (): Joi.StringSchema => Joi.string().max(255);

const optionsRule = Joi.object<Options>({
    workspace: text(),
    limit: upTo32Bits(LIMIT),
    offset: upTo32Bits(0),
    only_up: Joi.boolean().default(false),
    addresses: Joi.array().items(text()).single().min(1).max(MAX_ADDRESSES),
    address: text(),
    proto: text(),
    ports: Joi.alternatives(Joi.number().integer(), text()),
    names: text(),
    ntype: text(),
}).unknown();

/** A method that reads a list of the host's, whose rows are the result as they are. */
interface MoreMethod {
    readonly more: MoreName;
}

interface Method {
    readonly list: ListName;
    readonly shown: (row: Row, relations: Relations) => object;
    readonly withServices?: boolean;
}

const seconds = (time: unknown): number => Math.floor(Number(time) / 1000);
const said = (value: unknown): string => String(value ?? '');
const times = ({ created_at, updated_at }: Row) => ({ created_at: seconds(created_at), updated_at: seconds(updated_at) });
const addressOf = ({ host_id }: Row, { hosts }: Relations): string | undefined => hosts.get(host_id as number)?.address;

const HOST_TEXTS = ['address', 'mac', 'name', 'state', 'os_name', 'os_flavor', 'os_sp', 'os_lang', 'purpose', 'info'] as const;

const METHODS: Readonly<Record<string, Method | MoreMethod>> = {
    'db.workspaces': { list: 'workspaces', shown: (row) => ({ id: row.id, name: row.name, ...times(row) }) },
    'db.hosts': {
        list: 'hosts',
        shown: (row) => ({ ...times(row), ...Object.fromEntries(HOST_TEXTS.map((field) => [field, said(row[field])])) }),
    },
    'db.services': {
        list: 'services',
        shown: (row, relations) => ({
            host: addressOf(row, relations) ?? 'unknown',
            ...times(row),
            port: row.port,
            proto: row.proto,
            state: row.state,
            name: said(row.name),
            info: said(row.info),
        }),
    },
    'db.vulns': {
        list: 'vulns',
        withServices: true,
        shown(row, relations) {
            const { port = null, proto = null } = relations.services.get(row.service_id as number) ?? {};
            const host = addressOf(row, relations) ?? null;
            return { port, proto, time: seconds(row.created_at), host, name: row.name, refs: referencesOf(row).join(',') };
        },
    },
    'db.notes': {
        list: 'notes',
        withServices: true,
        shown(row, relations) {
            const { name = '', port = '' } = relations.services.get(row.service_id as number) ?? {};
            const host = addressOf(row, relations) ?? '';
            return { time: seconds(row.created_at), host, service: name || port, type: said(row.ntype), data: JSON.stringify(row.data) };
        },
    },
    'db.loots': { more: 'loots' },
    'db.creds': { more: 'credentials' },
};

const callRule = Joi.object<{ jsonrpc: string; id: unknown; method: string; params: object | readonly object[] }>({
    jsonrpc: Joi.string().valid('2.0').required(),
    id: Joi.alternatives(Joi.string().allow(''), Joi.number().unsafe()).allow(null),
    method: Joi.string().required(),
    params: Joi.alternatives(Joi.array().items(Joi.object()).max(1), Joi.object()).default([]),
}).unknown();

/**
 * What a body calls.
 *
 * @throws ScanwireError `INVALID_INPUT` for options that are not of their form, or an address that is none.
 */
export function called(source: MoreSource, body: unknown, reader: Reader): Call | RpcError {
    const { error, value } = callRule.validate(body);
    if (error !== undefined || value === undefined) {
        const message = `Invalid request: ${error?.message ?? 'a body of JSON is missing'}`;
        return { code: -32_600, message };
    }

    const { method, params } = value;
    const found = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
    if (found === undefined) {
        return { code: -32_601, message: `Method not found: this service has ${Object.keys(METHODS).join(', ')}` };
    }

    const name = method.slice('db.'.length);
    const options = checked(optionsRule, [params].flat()[0] ?? {}) as Options;
    if ('more' in found) {
        const { offset, limit } = options;
        return {
            name,
            rows: page(moreRows(source, found.more, askedBy(options), reader), offset, limit),
            reads: source.more[found.more] !== undefined,
        };
    }
    return { name, rows: result(source.store, found, options, reader), reads: true };
}

/** The framework's own MCP server asks for vulnerabilities and notes of one host by `address`, and for services by `addresses`. */
function askedBy({ workspace, address, addresses = address === undefined ? undefined : [address] }: Options): Asked {
    return { workspace, ...(addresses !== undefined && { addresses: askedAddresses(addresses) }) };
}

async function* result(
    inventory: WholeInventory,
    { list, shown, withServices = false }: Method,
    options: Options,
    reader: Reader,
): AsyncIterable<readonly object[]> {
    const { workspace, limit, offset, ...wanted } = options;
    const asked: Asked = { ...askedBy(options), nonDead: list === 'hosts' && wanted.only_up };
    const holds = serviceRule(wanted);
    const rows = fulfilling(listed(inventory, list, asked, reader), list, wanted);
    const found = page(
        withServices && holds !== null
            ? onServices(related(inventory, { workspace, withHosts: false, withServices }, rows, reader), holds)
            : rows,
        offset,
        limit,
    );
    if (list === 'workspaces' || list === 'hosts') {
        for await (const batch of found) {
            yield batch.map((row) => shown(row, { hosts: new Map(), services: new Map() }));
        }
        return;
    }

    for await (const [batch, relations] of related(inventory, { workspace, withServices }, found, reader)) {
        yield batch.map((row) => shown(row, relations));
    }
}

type Wanted = Omit<Options, 'workspace' | 'limit' | 'offset'>;

async function* fulfilling(batches: AsyncIterable<readonly Row[]>, list: ListName, wanted: Wanted) {
    const { only_up, names, ntype } = wanted;
    const wantedNames = names?.split(',').map((name) => name.trim());
    const holds = serviceRule(wanted) ?? (() => true);
    for await (const batch of batches) {
        yield batch.filter(
            (row) =>
                (list !== 'services' || ((!only_up || row.state === 'open') && holds(row))) &&
                (wantedNames === undefined || wantedNames.includes(said(row.name))) &&
                (ntype === undefined || row.ntype === ntype),
        );
    }
}

/** Of a service, or of a row its service. */
type ServiceRule = (service: Readonly<Record<string, unknown>>) => boolean;

/** Null where every service will do. */
function serviceRule({ proto, ports }: Wanted): ServiceRule | null {
    if (proto === undefined && ports === undefined) {
        return null;
    }
    const isListed = ports === undefined ? undefined : portList(String(ports));
    return (service) => (proto === undefined || service.proto === proto) && (isListed === undefined || isListed(Number(service.port)));
}

async function* onServices(batches: ReturnType<typeof related>, holds: ServiceRule): AsyncGenerator<readonly Row[]> {
    for await (const [rows, { services }] of batches) {
        yield rows.filter((row) => holds({ ...services.get(row.service_id as number) }));
    }
}

const LAST_PORT = 65_535;

/**
 * Whether a list of ports has a port: `22,80,8000-8100`, `-1023` and `1024-`, `21-25,!24` for all of them but one, `!22` for all ports but that
 * one; as the framework reads it, blanks around its parts left out and bounds in either order. A part that is no number is a range of none.
 */
function portList(text: string): (port: number) => boolean {
    const parts = text.split(',').flatMap((part) => part.trim() || []);
    const excluding = parts.filter((part) => part.startsWith('!'));
    const excluded = excluding.flatMap((part) => portRange(part.replaceAll('!', '')));
    const isAllBut = excluded.length > 0 && excluding.length === parts.length;
    const listed = isAllBut ? [[1, LAST_PORT] as const] : parts.filter((part) => !part.startsWith('!')).flatMap(portRange);
    const [wanted, unwanted] = [mergedIntervals(listed), mergedIntervals(excluded)];
    return (port) => isWithinOne(wanted, port) && !isWithinOne(unwanted, port);
}

/** None for what is no number. */
function portRange(part: string): readonly Interval<number>[] {
    if (part === '') {
        return [];
    }

    const [from = '', to = from] = part.split('-');
    const [first, last] = [Number(from), to.trim() === '' ? LAST_PORT : Number(to)];
    if (Number.isNaN(first + last)) {
        return [];
    }
    return [first <= last ? [first, last] : [last, first]];
}

async function* page<T>(batches: AsyncIterable<readonly T[]>, offset: number, limit: number): AsyncIterable<readonly T[]> {
    let [skip, left] = [offset, limit];
    for await (const batch of batches) {
        const rows = batch.slice(skip, skip + left);
        skip = Math.max(0, skip - batch.length);
        left -= rows.length;
        yield rows;
        if (left <= 0) {
            return;
        }
    }
}
