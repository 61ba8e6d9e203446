/** What an assistant may read: one tool for each kind of thing, a page of 100 rows at a time. */
import Joi from 'joi';
import { addressRange } from '../../lib/address-range.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import { HOST_STATES } from '../../lib/inventory/host.ts';
import { workspaceNamed } from '../../lib/inventory/host-pages.ts';
import { DEFAULT_WORKSPACE } from '../../lib/inventory/resources.ts';
import { assertFilters, type Filters } from '../../lib/inventory/selection.ts';
import type { Collection, InventoryStore, ReadOptions } from '../../lib/inventory/store.ts';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import { jsonText } from '../../lib/printable.ts';
import type { JsonSchema } from '../../lib/records/record-schema.ts';
import { listRecords, type RecordQuery, type RecordStore } from '../../lib/records/store.ts';
import { checked, isStorableTime, STORABLE, UNSTORABLE } from '../../lib/schema-validation.ts';
import type { Deliveries } from '../../lib/webhooks/deliveries/deliveries.ts';
import { deliveryQuerySchema } from '../../lib/webhooks/deliveries/delivery-filter.ts';
import { jsonSchemaOf } from '../json-schema.ts';
import { pathId } from '../route-parts.ts';
import { type AnswerRoom, answerRoom } from './answer-room.ts';

/** What the tools read. A tool for what is left out is not there. */
export interface Sources {
    readonly store: InventoryStore;
    readonly records?: RecordStore | undefined;
    readonly deliveries?: ReadDeliveries | undefined;
}

/** What is asked of deliveries. */
export type ReadDeliveries = Pick<Deliveries, 'list'> & Partial<Pick<Deliveries, 'count'>>;

/** What somebody may see. */
export interface Sight {
    /** Whether he has the scope. */
    has(scope: ApiKeyScope): boolean;
    /** The only workspaces; null for all. */
    readonly workspaces: ReadonlySet<number> | null;
}

/** How a tool is called. */
export interface CallOptions extends ReadOptions {
    /** What other calls of the same request have left; all by default. */
    readonly room?: AnswerRoom;
}

/** A page of rows. */
export interface PageOfRows {
    readonly rows: readonly object[];
    /** How many rows there are in all, whatever the page; null where the store does not count, or not to the end. */
    readonly total: number | null;
    /** As far as was counted, where there are more. */
    readonly atLeast?: number;
    /** For the next page, null after the last. */
    readonly cursor: string | null;
}

/** A tool as it is listed. */
export interface Tool {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: JsonSchema;
    readonly annotations: { readonly readOnlyHint: true; readonly openWorldHint: false };
}

const PAGE = 100;

type Reading = ReadOptions & { readonly room: AnswerRoom };
type Input = Readonly<Record<string, string | undefined>>;
type AnyRow = Readonly<Record<string, unknown>> & { readonly id: number };
type AnyRows = Collection<AnyRow>;

interface Definition {
    readonly description: string;
    readonly scope: ApiKeyScope;
    readonly input: Joi.ObjectSchema;
    /** Undefined where the sources lack it. */
    source(sources: Sources): unknown;
    page(sources: Sources, input: Input, sight: Sight, reading: Reading): Promise<PageOfRows>;
}

const cursor = Joi.string().max(64).description('The cursor of the page before');
const workspace = Joi.string().max(255).default(DEFAULT_WORKSPACE).description('Name of the workspace');
const whole = (what: string): Joi.StringSchema => Joi.string().allow('').max(255).description(what);
const address = Joi.string().max(255).description('An address, a block such as 192.0.2.0/24, or a range such as 192.0.2.1-192.0.2.9');
const search = Joi.string().max(255).description('Part of a name, an address or an information, in upper or lower case');
const since = Joi.string().isoDate().description('Changed at this time or later');

const TOOLS: Readonly<Record<string, Definition>> = {
    workspaces: {
        description: 'Workspaces: hosts that belong together',
        scope: 'inventory:read',
        input: Joi.object({ name: whole('Exactly this name'), search, cursor }),
        source: ({ store }) => store.workspaces,
        page: ({ store }, input, sight, reading) => workspacePage(store.workspaces as unknown as AnyRows, input, sight, reading),
    },
    hosts: inventoryTool('hosts', 'Hosts of a workspace', {
        address,
        state: Joi.string()
            .valid(...HOST_STATES)
            .description('Exactly this state'),
        os_name: whole('Exactly this operating system'),
        search,
        updated_since: since,
    }),
    services: inventoryTool('workspaceServices', 'Services of all hosts of a workspace; host_id is the id of the host', {
        address,
        state: whole('open, closed, filtered or unknown'),
        name: whole('Exactly this name, such as https'),
        search,
        updated_since: since,
    }),
    vulns: inventoryTool('workspaceVulns', 'Vulnerabilities of all hosts of a workspace', {
        address,
        name: whole('Exactly this name'),
        search,
        updated_since: since,
    }),
    notes: inventoryTool('workspaceNotes', 'Notes on hosts of a workspace', { address, updated_since: since }),
    records: {
        description: 'HTTPS scan records, without the bytes of the responses',
        scope: 'records:read',
        input: Joi.object({ host: whole('Name or address of the endpoint'), ip: whole('Address of the endpoint'), cursor }),
        source: ({ records }) => records,
        page: ({ records }, input, sight, { room }) => recordPage(records as RecordStore, input, sight, room),
    },
    deliveries: {
        description: 'Deliveries of events to receivers, newest first',
        scope: 'deliveries:read',
        input: Joi.object({
            state: deliveryQuerySchema.extract('state').description('Exactly this state'),
            exporterId: whole('Id of the exporter'),
            outcome: deliveryQuerySchema.extract('outcome').description('What the last attempt came to'),
            cursor,
        }),
        source: ({ deliveries }) => deliveries,
        page: ({ deliveries }, input, sight, { room }) => deliveryPage(deliveries as ReadDeliveries, input, sight, room),
    },
};

function inventoryTool(name: keyof InventoryStore, description: string, filters: Joi.SchemaMap): Definition {
    return {
        description,
        scope: 'inventory:read',
        input: Joi.object({ workspace, ...filters, cursor }),
        source: ({ store }) => store[name],
        async page({ store }, { workspace: called, cursor: after, ...filters }, sight, reading) {
            const isSeen = (seen: number): boolean => sees(sight, seen);
            const { id } = await workspaceNamed(store, called ?? DEFAULT_WORKSPACE, { ...reading, isSeen });
            return await rowPage(store[name] as unknown as AnyRows, [id], { where: filtersOf(filters), after }, reading);
        },
    };
}

/** The tools that there are for somebody. */
export function toolsOf(sources: Sources, sight: Sight): readonly Tool[] {
    return Object.entries(TOOLS)
        .filter(([, { scope, source }]) => source(sources) !== undefined && sight.has(scope))
        .map(([name, definition]) => toolOf(name, definition));
}

/** Tools as they are listed, made when they are listed first: to make the schemas of all of them takes some milliseconds. */
const listed = new Map<string, Tool>();

function toolOf(name: string, { description, input }: Definition): Tool {
    const annotations = { readOnlyHint: true, openWorldHint: false } as const;
    const tool = listed.get(name) ?? { name, description, inputSchema: jsonSchemaOf({ schema: input }, 'input'), annotations };
    listed.set(name, tool);
    return tool;
}

/**
 * What a tool answers.
 *
 * @throws ScanwireError `NOT_FOUND` for a tool that there is not, or a workspace; `INVALID_INPUT` with the field, or without room; `UNAVAILABLE`.
 */
export async function callTool(
    sources: Sources,
    name: string,
    input: unknown,
    sight: Sight,
    { room = answerRoom(), ...options }: CallOptions = {},
): Promise<PageOfRows> {
    const definition = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
    if (definition === undefined || definition.source(sources) === undefined || !sight.has(definition.scope)) {
        throw new ScanwireError('NOT_FOUND', `There is no tool ${jsonText(name)} for this key`, { field: 'name' });
    }

    room.assertLeft();
    return await definition.page(sources, storable(checked(definition.input, input ?? {})), sight, { ...options, room });
}

/** Not a rule of the schemas: patterns of which a client knows only a part would keep it from the tool. */
function storable(input: Input): Input {
    const [field] = Object.entries(input).find(([, text]) => text !== undefined && !STORABLE.test(text)) ?? [];
    if (field !== undefined) {
        throw new ScanwireError('INVALID_INPUT', `${field} ${UNSTORABLE}`, { field });
    }
    return input;
}

function filtersOf({ address, updated_since, ...others }: Input): Filters {
    return {
        ...others,
        ...(address !== undefined && { address: addressRange(address) }),
        ...(updated_since !== undefined && { updated_since: timeOf(updated_since) }),
    };
}

/** Not a rule of the schemas either: the form of a time is, which clients know. */
function timeOf(text: string): Date {
    const time = new Date(text);
    if (!isStorableTime(time)) {
        throw new ScanwireError('INVALID_INPUT', 'updated_since must be a time of the years 1 to 9999', { field: 'updated_since' });
    }
    return time;
}

interface AskedPage {
    readonly where: Filters;
    readonly after: string | undefined;
}

async function rowPage(
    rows: AnyRows,
    path: readonly number[],
    { where, after }: AskedPage,
    { room, ...options }: Reading,
): Promise<PageOfRows> {
    const { select, filters } = rows;
    assertFilters(where, filters);
    if (select === undefined) {
        throw new ScanwireError('INVALID_INPUT', 'cursor cannot be met: the store of this list does not know it', { field: 'cursor' });
    }

    const byChange = where.updated_since !== undefined;
    const behind = after === undefined ? {} : { after: positionOf(after, byChange) };
    const { page, last } = await pageOf(select(path, { where, limit: PAGE + 1, ...behind }, options), room);
    const next = last === null ? null : byChange ? `${Number(last.updated_at)}-${last.id}` : `${last.id}`;
    const total = (await rows.count?.(path, where, options)) ?? (await lengthOf(select(path, { where }, options)));
    return { rows: page, total, cursor: next };
}

/** The first rows, as many as a page has and the answer has room for, and the last of them where there are more. */
async function pageOf<Row extends object>(
    batches: AsyncIterable<readonly Row[]> | readonly (readonly Row[])[],
    room: AnswerRoom,
): Promise<{ readonly page: readonly Row[]; readonly last: Row | null }> {
    const page: Row[] = [];
    for await (const batch of batches) {
        for (const row of batch) {
            if (page.length < PAGE && room.takes(row)) {
                page.push(row);
                continue;
            }

            const last = page.at(-1);
            if (last === undefined) {
                room.assertLeft();
            }
            return { page, last: last ?? null };
        }
    }
    return { page, last: null };
}

/** An id, with the time of a change before it where rows are in the order of those. */
const CURSOR = /^(?:(-?\d{1,16})-)?(\d{1,16})$/;

/** @param max The largest id of a row. */
function positionOf(text: string, byChange: boolean, max: number = MAX_ID): { readonly id: number; readonly updated_at?: Date } {
    const [, time, digits = ''] = CURSOR.exec(text) ?? [];
    const [id, updated_at] = [pathId(digits, max), new Date(Number(time ?? 0))];
    if (id === null || (time !== undefined) !== byChange || !isStorableTime(updated_at)) {
        throw new ScanwireError('INVALID_INPUT', 'cursor must be that of the page before, with the same input', { field: 'cursor' });
    }
    return { id, ...(byChange && { updated_at }) };
}

async function lengthOf(batches: AsyncIterable<readonly unknown[]>): Promise<number> {
    let total = 0;
    for await (const { length } of batches) {
        total += length;
    }
    return total;
}

/** All of them at once are few; those that somebody does not see are not there. */
async function workspacePage(
    workspaces: AnyRows,
    { name, search: part, cursor: after }: Input,
    sight: Sight,
    { room, ...options }: Reading,
): Promise<PageOfRows> {
    const behind = after === undefined ? 0 : positionOf(after, false).id;
    const found: AnyRow[] = [];
    for await (const batch of workspaces.list([], options)) {
        const wanted = batch.filter(({ name: called }) =>
            String(called)
                .toLowerCase()
                .includes(part?.toLowerCase() ?? ''),
        );
        found.push(...wanted.filter((row) => sees(sight, row.id) && (name === undefined || row.name === name)));
    }
    const { page, last } = await pageOf([found.filter(({ id }) => id > behind)], room);
    return { rows: page, total: found.length, cursor: last && `${last.id}` };
}

function sees({ workspaces }: Sight, id: number): boolean {
    return workspaces === null || workspaces.has(id);
}

async function recordPage(records: RecordStore, { cursor: after, ...where }: Input, sight: Sight, room: AnswerRoom): Promise<PageOfRows> {
    assertSeesAll(sight);
    const position = after === undefined ? {} : { after: positionOf(after, false, Number.MAX_SAFE_INTEGER).id };
    const { page, last } = await pageOf(shownRecords(records, { ...where, ...position, limit: PAGE + 1 }), room);
    const total = (await records.count?.(where)) ?? null;
    return { rows: page, total, cursor: last && `${last.id}` };
}

/** Without the bytes of their responses, of which a few are held at a time. */
async function* shownRecords(records: RecordStore, query: RecordQuery) {
    for await (const batch of listRecords(records, query)) {
        yield batch.map(({ id, importedAt, record: { data, ...record } }) => {
            return { id, importedAt, ...record, bytes: Buffer.byteLength(data, 'base64') };
        });
    }
}

async function deliveryPage(
    deliveries: ReadDeliveries,
    { cursor: after, ...where }: Input,
    sight: Sight,
    room: AnswerRoom,
): Promise<PageOfRows> {
    assertSeesAll(sight);
    const found = await deliveries.list({ ...where, ...(after !== undefined && { after }), limit: PAGE + 1 } as object);
    const { page, last } = await pageOf([found], room);
    const { count = null, more = false } = (await deliveries.count?.(where as object)) ?? {};
    const total = more && count !== null ? { total: null, atLeast: count } : { total: count };
    return { rows: page, ...total, cursor: last?.id ?? null };
}

/** Records and deliveries are in no workspace. */
function assertSeesAll({ workspaces }: Sight): void {
    if (workspaces !== null) {
        throw new ScanwireError('NOT_FOUND', 'The API key is limited to workspaces, and what is here belongs to none', { field: 'name' });
    }
}
