import Boom from '@hapi/boom';
import type { Lifecycle, Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { ApplicationSchema } from '../../lib/application-schema.ts';
import { type Eventual, whenThere } from '../../lib/eventual.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import { rowsOf } from '../../lib/inventory/host-pages.ts';
import type { Collection, ReadOptions } from '../../lib/inventory/store.ts';
import { orUnavailable, type StoreFailure } from '../errors.ts';
import { begunInTime, inTime } from '../in-time.ts';
import type { Streams } from '../open-streams.ts';
import { pathId } from '../route-parts.ts';
import { streamCut, type WhileOpen, whileOpen, withFirst } from '../streamed-answers.ts';
import { type AnswerBody, answered } from './compression.ts';
import { assertKnown, readDeletions } from './deleted-rows.ts';
import { type Asked, askedOf, nextLink } from './index-query.ts';
import { limitedTo, seenAt } from './limited-workspaces.ts';
import type { ResourceRow } from './options.ts';
import { indexText, type RowForm, type RowForms } from './row-forms.ts';

/** What is said where a store cannot be read. */
export const UNREADABLE: StoreFailure = { plugin: 'rest-api-v2', message: 'The data cannot be read now; try again later' };

/** One resource as its route needs it. */
export interface Resource {
    /** Path of the index below the base, for example `/workspaces/{workspace_id}/hosts`; of a row: that and an id. */
    readonly path: string;
    /** The option that says where it is, for example `rest-api-v2 options: resources[0].path`. */
    readonly option: string;
    /** Name of the id of a row in its path. */
    readonly idName: string;
    /** What a row looks like. */
    readonly schema: ApplicationSchema;
    readonly rows: Collection<ResourceRow>;
    /** Rows of the resource right above; null at the top. */
    readonly parents: Collection<ResourceRow> | null;
    /** Made when they are asked for first: a server has more resources than most of its clients read. */
    readonly forms: () => RowForms;
    /** Those of what was deleted from it. */
    readonly deletionForms: () => RowForms;
    /** Whether an index of all rows in JSON may be sent as the store writes it. */
    readonly takesText: boolean;
}

type Handler = (request: Request, h: ResponseToolkit) => Eventual<ResponseObject>;

/** What a resource answers on its one route: its index, with or without a trailing slash, or the row whose id stands behind it. */
export function read(resource: Resource, streams: Streams): Lifecycle.Method {
    const [toAll, toOne] = [index(resource, streams), show(resource)];
    return (request, h) => {
        const id: unknown = request.params[resource.idName];
        if (id === '' && request.server.settings.router?.stripTrailingSlash) {
            // Where the server has stripped a slash, this one is the second.
            throw Boom.notFound();
        }

        return (id ? toOne : toAll)(request, h);
    };
}

/** All rows, streamed, or the part of them that is asked for. A HEAD request reads none of them. */
function index(resource: Resource, streams: Streams): Handler {
    const { parents, path: template } = resource;
    const depth = template.split('{').length - 1;
    return async (request, h) => {
        const path = idsOf(request, depth);
        const seen = seenAt(resource, request, path);
        const rows = seen === null ? resource.rows : limitedTo(seen, resource.rows);
        const asked = askedOf(request, rows, resource);
        const { where = {} } = asked.selection ?? {};
        if (request.method !== 'head') {
            streams[limitOf(asked) === undefined ? 'begin' : 'watch'](request);
        }

        const open = whileOpen(request);
        const { signal } = open;
        const { deleted } = asked;
        const { deletions } = rows;
        if (deleted !== null && deletions !== undefined) {
            // What was deleted below a row is known for longer than the row.
            await assertParent(request, parents, path, open);
            assertKnown(deleted, await answerOf(request, () => deletions.since({ signal })));
        }

        const total = asked.counts ? await answerOf(request, () => rows.count?.(path, where, { signal })) : undefined;
        const read =
            request.method === 'head'
                ? await unread(request, resource, open)
                : await readIndex(request, { ...resource, rows }, path, asked, open);
        if (read.isEmpty && deleted === null) {
            await assertParent(request, parents, path, open);
        }
        if (read.isWhole) {
            open.done();
        }

        const response = answered(request, h, read.body, asked.form.type);
        if (read.next !== null) {
            response.header('link', read.next);
        }
        return total === undefined ? response : response.header('x-total-count', `${total}`).header('preference-applied', 'count=exact');
    };
}

/** @throws Boom 404 for an index below a row that is not there. */
async function assertParent(request: Request, parents: Resource['parents'], path: readonly number[], open: WhileOpen): Promise<void> {
    if (parents !== null && !(await row(request, parents, path, open))) {
        throw Boom.notFound();
    }
}

/**
 * Of an index of which no row is read. The look-up of a parent tells whether the store answers; one without parents is asked for the last id that there may
 * be, which reads no row either.
 */
async function unread(request: Request, { parents, rows }: Resource, open: WhileOpen): Promise<IndexRead> {
    if (parents === null) {
        await row(request, rows, [MAX_ID], open);
    }
    return { isEmpty: true, isWhole: true, body: [], next: null };
}

/** Of an index of a batch, as stores of ours read it first: what begins it, three pieces of 64 KiB with commas between them, what ends it. */
const PIECES = 7;

interface IndexRead {
    readonly isEmpty: boolean;
    /** Whether all of it is there. */
    readonly isWhole: boolean;
    readonly body: AnswerBody;
    /** The `Link` to what comes behind a page, null when nothing does. */
    readonly next: string | null;
}

async function readIndex(
    request: Request,
    resource: Resource,
    path: readonly number[],
    asked: Asked,
    { signal }: WhileOpen,
): Promise<IndexRead> {
    const { form, selection, deleted } = asked;
    const { rows } = resource;
    const options = { signal };
    const cut = streamCut(request, 'rest-api-v2');
    let next: string | null = null;
    const begin = async () => {
        if (selection === null && deleted === null) {
            return await withFirst(indexText(allOf(resource, form, path, options), form), { cut, few: PIECES });
        }

        let batches = selected(rows, path, asked, options);
        const limit = limitOf(asked);
        if (limit !== undefined) {
            const page = await pageOf(batches, limit);
            batches = oneBatch(page.rows);
            next = page.isLast ? null : nextLink(request, asked, page.rows.at(-1) as ResourceRow);
        }
        return await withFirst(indexText(batches, form), { cut, few: PIECES });
    };
    const { first, all, whole } = await orUnavailable(request, UNREADABLE, () => begunInTime(request, begin));
    return { isEmpty: first === undefined || first === form.begin + form.end, isWhole: whole !== null, body: whole ?? all, next };
}

function allOf({ rows, forms, takesText }: Resource, form: RowForm, path: readonly number[], options: ReadOptions) {
    const text = takesText && form === forms().form('json') ? rows.listText?.(path, options) : undefined;
    return text ?? rows.list(path, options);
}

/** Rows of a page, undefined where no page is asked for. */
function limitOf({ selection, deleted }: Asked): number | undefined {
    return (deleted ?? selection)?.limit;
}

/** One row more than the page has is asked for: it tells whether there is a next page. */
function selected(
    rows: Collection<ResourceRow>,
    path: readonly number[],
    { selection, deleted }: Asked,
    options: ReadOptions,
): AsyncIterable<readonly ResourceRow[]> {
    if (deleted !== null && rows.deletions !== undefined) {
        return readDeletions(rows.deletions, path, deleted, options);
    }

    const { limit, ...rest } = selection ?? {};
    const select = rows.select as NonNullable<typeof rows.select>;
    return select(path, limit === undefined ? rest : { ...rest, limit: limit + 1 }, options);
}

async function pageOf(batches: AsyncIterable<readonly ResourceRow[]>, limit: number) {
    const rows = await rowsOf(batches);
    return { rows: rows.slice(0, limit), isLast: rows.length <= limit };
}

async function* oneBatch<Row>(rows: readonly Row[]): AsyncGenerator<readonly Row[]> {
    yield rows;
}

/** One row. */
function show(resource: Resource): Handler {
    const { rows, forms } = resource;
    return (request, h) => {
        const path = idsOf(request);
        seenAt(resource, request, path);
        const open = whileOpen(request);
        return whenThere(row(request, rows, path, open), (found) => {
            open.done();
            if (!found) {
                throw Boom.notFound();
            }

            const { text, type } = forms().form('json');
            const response = h.response(text([found])).type(type);
            // The type names the character set: hapi would look twice whether it does.
            response.charset();
            return response;
        });
    };
}

/** The row at the end of a path, null when there is none. `rows[0]` of a store of the application's own is undefined then. */
function row(
    request: Request,
    rows: Collection<ResourceRow>,
    path: readonly number[],
    open: WhileOpen,
): Eventual<ResourceRow | null | undefined> {
    return answerOf(request, () => rows.get(path.slice(0, -1), path.at(-1) ?? 0, open));
}

/** What the store is asked for; a 503 when it fails, or is late. */
function answerOf<T>(request: Request, ask: () => Eventual<T>): Eventual<T> {
    return orUnavailable(request, UNREADABLE, () => inTime(request, ask));
}

/** The ids of the request's path, from the outside in, so many of them. */
function idsOf({ paramsArray }: Request, count?: number): readonly number[] {
    return (paramsArray as string[]).slice(0, count).map((segment) => {
        const id = pathId(segment, MAX_ID);
        if (id === null) {
            throw Boom.notFound();
        }

        return id;
    });
}

const BASE_PAGE = `<!DOCTYPE html>
<html lang="en">
<head><title>REST API v2</title></head>
<body><p>The REST API v2 is reachable and the API key is valid.</p></body>
</html>
`;

/** The page loads nothing, runs nothing and stands in no frame. */
const NOTHING_BUT_TEXT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Shows a person, or a probe, that key and licence are valid. */
export const base: Lifecycle.Method = (_request, h) =>
    h.response(BASE_PAGE).type('text/html; charset=utf-8').header('content-security-policy', NOTHING_BUT_TEXT);

/** Whatever is no route is not found. */
export const unknownRoute: Lifecycle.Method = () => {
    throw Boom.notFound();
};
