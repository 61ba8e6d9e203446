import { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { HOST_PATTERN, IP_PATTERN } from '../../lib/addresses.ts';
import type { RecordQuery, RecordStore, StoredRecord } from '../../lib/records/index.ts';
import { listRecords } from '../../lib/records/store.ts';
import { timestamp } from '../../lib/timestamp.ts';
import { orUnavailable } from '../errors.ts';
import { begunInTime, inTime, noteArrival } from '../in-time.ts';
import { type Streams, streamsOf } from '../open-streams.ts';
import { pathId, queryOf } from '../route-parts.ts';
import { seesCuts, streamCut, withFirst } from '../streamed-answers.ts';
import { acceptsLines, RECORDS_FAILED } from './batch-request.ts';
import { LINES_TYPE } from './batch-response.ts';
import type { Access, Settings } from './options.ts';

const DEFAULT_LIMIT = 100;
/** What is longer is no page: it takes as long as a list of all. */
const LONGEST_PAGE = 1000;

/** Shows what is stored: one record, a page of them, or all to whoever accepts JSON lines. */
export function recordRoutes({ path, maxStreams }: Settings, store: RecordStore, whoever: Access): ServerRoute[] {
    const streams = streamsOf(store, maxStreams);
    const access: Access = { ...whoever, ext: { ...whoever.ext, onPreAuth: { method: noteArrival } } };
    return [
        {
            method: 'GET',
            path: `${path}/records`,
            options: { ...access, description: 'Stored HTTPS scan records by address, host and time of import' },
            handler: (request, h) => index(request, h, store, streams),
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
    const id = pathId(String(request.params.id));
    const stored = id === null ? null : await orUnavailable(request, RECORDS_FAILED, () => inTime(request, () => store.get(id)));
    if (stored === null) {
        throw Boom.notFound();
    }

    return stored;
}

async function index(request: Request, h: ResponseToolkit, store: RecordStore, streams: Streams): Promise<ResponseObject> {
    const query = queryOf(request, listQuerySchema);
    const lines = acceptsLines(request) && seesCuts(request);
    const { limit = lines ? Number.POSITIVE_INFINITY : DEFAULT_LIMIT } = query;
    // For HEAD too: rows are read before it is known that there is an answer.
    streams[limit > LONGEST_PAGE ? 'begin' : 'watch'](request);

    const texts = () => {
        const pieces = lines ? linesText(listRecords(store, recordQuery(query))) : pageText(request, store, query);
        return withFirst(pieces, { cut: streamCut(request, 'https-record-schema') });
    };
    const { all } = await orUnavailable(request, RECORDS_FAILED, () => begunInTime(request, texts));
    return h.response(Readable.from(all, { objectMode: false })).type(lines ? LINES_TYPE : 'application/json; charset=utf-8');
}

/** The path and query of another page. */
function linkTo({ path }: Request, query: ListQuery): string {
    const parameters = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
    return `${path}?${new URLSearchParams(parameters)}`;
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

/** One JSON object on each line. */
async function* linesText(batches: AsyncIterable<readonly StoredRecord[]>): AsyncGenerator<string, void, undefined> {
    for await (const batch of batches) {
        yield batch.map((stored) => `${JSON.stringify(stored)}\n`).join('');
    }
}

/** `{"records":[…],"next":"…"}`; `next` is the path of the page behind this one, null on the last. */
async function* pageText(request: Request, store: RecordStore, query: ListQuery): AsyncGenerator<string, void, undefined> {
    const { limit = DEFAULT_LIMIT } = query;
    let separator = '{"records":[';
    let unread = limit;
    let last = 0;
    let next: string | null = null;
    // One more tells whether there is another page.
    for await (const batch of listRecords(store, recordQuery({ ...query, limit: limit + 1 }))) {
        const shown = batch.slice(0, unread);
        unread -= shown.length;
        last = shown.at(-1)?.id ?? last;
        next = shown.length < batch.length ? linkTo(request, { ...query, after: last }) : null;
        if (shown.length > 0) {
            yield separator + shown.map((stored) => JSON.stringify(stored)).join(',');
            separator = ',';
        }
    }

    yield `${unread === limit ? separator : ''}],"next":${JSON.stringify(next)}}`;
}
