import { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { HOST_PATTERN, IP_PATTERN } from '../../lib/records/address-patterns.ts';
import type { RecordQuery, RecordStore, StoredRecord } from '../../lib/records/index.ts';
import { takeTurns } from '../../lib/take-turns.ts';
import { timestamp } from '../../lib/timestamp.ts';
import { acceptsLines, queryOf, storeFailure } from './batch.ts';
import type { Access, Settings } from './options.ts';
import { LINES_TYPE } from './stream-results.ts';

const DEFAULT_LIMIT = 100;
const PLAIN_DECIMAL = /^[1-9]\d{0,15}$/;

/** Shows what is stored: one record, a page of them, or all to whoever accepts JSON lines. */
export function recordRoutes({ path }: Settings, store: RecordStore, access: Access): ServerRoute[] {
    return [
        {
            method: 'GET',
            path: `${path}/records`,
            options: { ...access, description: 'Stored HTTPS scan records by address, host and time of import' },
            handler: (request, h) => index(request, h, store),
        },
        {
            method: 'GET',
            path: `${path}/records/{id}`,
            options: { ...access, description: 'One stored HTTPS scan record' },
            handler: (request) => show(request, store),
        },
    ];
}

async function show(request: Request, store: RecordStore): Promise<StoredRecord> {
    const id = String(request.params.id);
    const stored = PLAIN_DECIMAL.test(id) ? await fromStore(request, () => store.get(Number(id))) : null;
    if (stored === null) {
        throw Boom.notFound();
    }

    return stored;
}

/**
 * The first batch is taken before the answer begins, so that a store that fails is a proper error; after that a failure can only
 * break the connection, and must: a cut answer never looks complete.
 */
async function index(request: Request, h: ResponseToolkit, store: RecordStore): Promise<ResponseObject> {
    const query = queryOf(request, listQuerySchema);
    if (acceptsLines(request)) {
        const batches = await begun(request, listRecords(store, recordQuery(query)));
        return h.response(Readable.from(linesText(batches), { objectMode: false })).type(LINES_TYPE);
    }

    const { limit = DEFAULT_LIMIT } = query;
    // One more tells whether there is another page.
    const batches = await begun(request, listRecords(store, recordQuery({ ...query, limit: limit + 1 })));
    const next = (after: number): string => linkTo(request, { ...query, after });
    return h.response(Readable.from(pageText(batches, { limit, next }), { objectMode: false })).type('application/json; charset=utf-8');
}

type Batches = AsyncGenerator<readonly StoredRecord[], void, undefined>;

/** The batches, the first of which was read without a failure. */
async function begun(request: Request, batches: Batches): Promise<Batches> {
    const first = await fromStore(request, () => batches.next());
    return (async function* () {
        if (first.done !== true) {
            yield first.value;
            yield* batches;
        }
    })();
}

async function fromStore<T>(request: Request, ask: () => Promise<T>): Promise<T> {
    try {
        return await ask();
    } catch (error) {
        throw storeFailure(request, error);
    }
}

/** The path and query of another page. */
function linkTo({ path }: Request, query: ListQuery): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        parameters.set(name, String(value));
    }

    return `${path}?${parameters}`;
}

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

const listQuerySchema: Joi.ObjectSchema<ListQuery> = Joi.object<ListQuery, true>({
    ip: Joi.string().pattern(IP_PATTERN).messages({ 'string.pattern.base': '{{#label}} must be an IPv4 or IPv6 address' }),
    host: Joi.string().pattern(HOST_PATTERN).messages({ 'string.pattern.base': '{{#label}} must be a name or an IP address' }),
    imported_from: timestamp(),
    imported_before: timestamp(),
    after: Joi.number().integer().min(0),
    limit: Joi.number().integer().min(1),
});

/** As the store is asked. */
function recordQuery({ ip, host, imported_from, imported_before, after, limit = Number.POSITIVE_INFINITY }: ListQuery): RecordQuery {
    return { ip, host, importedFrom: dateOf(imported_from), importedBefore: dateOf(imported_before), after, limit };
}

function dateOf(text: string | undefined): Date | undefined {
    return text === undefined ? undefined : new Date(text);
}

export interface PageOptions {
    /** Most records of the page. What is read beyond shows only that there is another page. */
    readonly limit: number;
    /** Link to the page behind a record. */
    next(after: number): string;
}

/** One JSON object on each line. */
async function* linesText(batches: Batches): AsyncGenerator<string, void, undefined> {
    for await (const batch of batches) {
        yield batch.map((stored) => `${JSON.stringify(stored)}\n`).join('');
    }
}

/** `{"records":[…],"next":"…"}`; `next` is null on the last page. */
async function* pageText(batches: Batches, { limit, next }: PageOptions): AsyncGenerator<string, void, undefined> {
    let count = 0;
    let last = 0;
    let link: string | null = null;
    yield '{"records":[';
    for await (const batch of batches) {
        const shown = batch.slice(0, limit - count);
        link = shown.length < batch.length ? next(shown.at(-1)?.id ?? last) : null;
        if (shown.length > 0) {
            yield `${count === 0 ? '' : ','}${shown.map((stored) => JSON.stringify(stored)).join(',')}`;
        }

        count += shown.length;
        last = shown.at(-1)?.id ?? last;
    }

    yield `],"next":${JSON.stringify(link)}}`;
}

/** Records that are held at once: each may be as large as a line may be. */
const AT_ONCE = 16;

/** All that the query finds, however much it is, in batches that are small enough to be held. */
async function* listRecords(
    store: RecordStore,
    { limit, ...query }: RecordQuery,
): AsyncGenerator<readonly StoredRecord[], void, undefined> {
    const turn = takeTurns();
    let { after } = query;
    for (let left = limit; left > 0; ) {
        const asked = Math.min(left, AT_ONCE);
        const batch = await store.list({ ...query, after, limit: asked });
        if (batch.length > 0) {
            yield batch;
        }

        left = batch.length < asked ? 0 : left - asked;
        after = batch.at(-1)?.id;
        await turn();
    }
}
