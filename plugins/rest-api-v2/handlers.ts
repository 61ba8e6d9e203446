import { Readable } from 'node:stream';
import Boom from '@hapi/boom';
import type { Lifecycle, Request } from '@hapi/hapi';
import type { SchemaDescription } from '../../lib/application-schema.ts';
import { timeSlice } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { emptyValue, MAX_ID } from '../../lib/inventory/fields.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import type { TimestampFormat } from '../../lib/timestamp.ts';
import { orUnavailable, pathId, type StoreFailure, streamCut, untilClosed, withFirst } from '../request.ts';
import { workspacesSeen } from '../strategy.ts';
import type { ResourceRow } from './options.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
export const UNREADABLE: StoreFailure = { plugin: 'rest-api-v2', message: 'The data cannot be read now; try again later' };

/** One resource as its two routes need it. */
export interface Resource {
    /** Path of the index below the base, for example `/workspaces/{workspace_id}/hosts`; of a row: that and an id. */
    readonly path: string;
    readonly rows: Collection<ResourceRow>;
    /** Rows of the resource right above; null at the top. */
    readonly parents: Collection<ResourceRow> | null;
    readonly rowText: RowText;
}

/** All rows, streamed. */
export function index(resource: Resource): Lifecycle.Method {
    const { rows, parents, rowText } = resource;
    return async (request, h) => {
        const path = idsOf(request);
        const seen = seenAt(resource, request, path);
        const signal = untilClosed(request);
        const batches = () => (seen === null ? rows.list(path, { signal }) : only(seen, rows.list(path, { signal })));
        const texts = () => withFirst(indexText(batches(), rowText), streamCut(request, 'rest-api-v2'));
        const { first, all } = await orUnavailable(request, UNREADABLE, texts);
        if (first === EMPTY_INDEX && parents !== null && (await row(request, parents, path)) === null) {
            throw Boom.notFound();
        }

        return h.response(Readable.from(all, { objectMode: false })).type(JSON_TYPE);
    };
}

/** One row. */
export function show(resource: Resource): Lifecycle.Method {
    const { rows, rowText } = resource;
    return async (request, h) => {
        const path = idsOf(request);
        seenAt(resource, request, path);
        const found = await row(request, rows, path);
        if (found === null) {
            throw Boom.notFound();
        }

        return h.response(rowText([found])).type(JSON_TYPE);
    };
}

/** The row at the end of a path, null when there is none. `rows[0]` of a store of the application's own is undefined then. */
async function row(request: Request, rows: Collection<ResourceRow>, path: readonly number[]): Promise<ResourceRow | null> {
    return (await orUnavailable(request, UNREADABLE, () => rows.get(path.slice(0, -1), path.at(-1) ?? 0))) ?? null;
}

/** The ids of the request's path, from the outside in. */
function idsOf({ paramsArray }: Request): readonly number[] {
    return (paramsArray as string[]).map((segment) => {
        const id = pathId(segment, MAX_ID);
        if (id === null) {
            throw Boom.notFound();
        }

        return id;
    });
}

const WORKSPACES = '/workspaces';

/**
 * Lets a key that sees some workspaces only into nothing else: what is in none, as a resource of the application's own may be, included.
 * The store is not asked, so that what exists and what does not are one.
 *
 * @returns The workspaces that the index of workspaces shows; null where there is nothing left to choose.
 */
function seenAt({ path }: Resource, request: Request, [workspace]: readonly number[]): ReadonlySet<number> | null {
    const seen = workspacesSeen(request);
    if (seen === null) {
        return null;
    }

    const isBelow = path === WORKSPACES || path.startsWith(`${WORKSPACES}/{`);
    if (!isBelow || (workspace !== undefined && !seen.has(workspace))) {
        throw Boom.notFound();
    }

    return workspace === undefined ? seen : null;
}

/** Batches without the rows of other ids. What is no batch goes through, to be refused like any other. */
async function* only(ids: ReadonlySet<number>, batches: AsyncIterable<readonly ResourceRow[]>): AsyncGenerator<readonly ResourceRow[]> {
    for await (const batch of batches) {
        yield Array.isArray(batch) ? batch.filter(({ id }: ResourceRow) => ids.has(id)) : batch;
    }
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

/** A store may give batches of any size; this many rows become text at once. */
const ROWS_PER_TEXT = 500;

/** The index of a collection without rows. */
const EMPTY_INDEX = '[]';

/** The JSON array of all rows, in pieces: one text per batch. Ending it early ends the reading; a failure of the reading is its failure. */
async function* indexText(batches: AsyncIterable<readonly object[]>, rowText: RowText): AsyncGenerator<string, void, undefined> {
    const yieldIfDue = timeSlice();
    let separator = '[';
    for await (const batch of batches) {
        if (!Array.isArray(batch)) {
            throw new ScanwireError('MISCONFIGURED', 'The list of a collection must give batches, arrays of rows; it gave something else');
        }

        for (let start = 0; start < batch.length; start += ROWS_PER_TEXT) {
            yield separator + rowText(batch.slice(start, start + ROWS_PER_TEXT));
            separator = ',';
            await yieldIfDue();
        }
    }

    yield separator === '[' ? EMPTY_INDEX : ']';
}

/** JSON text of rows without the brackets of an array: one object, or several with commas between them. */
export type RowText = (rows: readonly object[]) => string;

type Row = Readonly<Record<string, unknown>>;

/** What goes out for a field that a row leaves open, from the row itself. */
export type Fill = Readonly<Record<string, (row: Row) => unknown>>;

/**
 * How rows of one resource become text: the fields of the schema in its order and no others, each always there, dates as
 * timestamps. The schema is looked at once, here, and never while answering.
 *
 * @param fill For fields whose value, where a row has none or `''`, is not the one that follows from the type.
 */
export function rowText(schema: SchemaDescription, timestamp: TimestampFormat, fill: Fill = {}): RowText {
    const fields = describedFields(schema, fill);
    // A copy of an object that has all keys already takes two thirds of the time of one that grows key by key.
    const blank = Object.fromEntries(fields.map(({ name }) => [name, null]));
    const shaped = (row: Row): object => {
        const shape: Record<string, unknown> = { ...blank };
        for (const { name, fill, isTime, fillsBlank } of fields) {
            const value = row[name];
            if (value === undefined || value === null || (fillsBlank && value === '')) {
                shape[name] = fill(row);
            } else {
                shape[name] = isTime ? timeText(value, timestamp) : value;
            }
        }

        return shape;
    };
    return (rows) => JSON.stringify((rows as readonly Row[]).map(shaped)).slice(1, -1);
}

/** Name, kind and filling of each field. */
function describedFields({ keys = {} }: SchemaDescription, fill: Fill) {
    return Object.entries(keys).map(([name, description]) => {
        const value = emptyValue(description);
        const ownFill = Object.hasOwn(fill, name) ? fill[name] : undefined;
        return { name, fill: ownFill ?? (() => value), isTime: description.type === 'date', fillsBlank: ownFill !== undefined };
    });
}

/** A store of the application's own may bring times as text or as milliseconds; a time that is none goes out as null. */
function timeText(value: unknown, timestamp: TimestampFormat): string | null {
    const instant = value instanceof Date ? value : new Date(value as string | number);
    return Number.isNaN(instant.getTime()) ? null : timestamp(instant);
}
