import { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { RecordStore, StoredRecord } from '../../lib/records/index.ts';
import { storeFailure } from './batch-failure.ts';
import { acceptsLines, queryOf } from './batch-request.ts';
import { listRecords } from './list-records.ts';
import type { Access, Settings } from './options.ts';
import { type ListQuery, listQuerySchema, recordQuery } from './record-query.ts';
import { linesText, pageText } from './record-text.ts';
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
