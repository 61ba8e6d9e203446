import { Readable } from 'node:stream';
import Boom from '@hapi/boom';
import type { Lifecycle, Request } from '@hapi/hapi';
import { DENIAL } from '../../lib/keys/api-keys.ts';
import type { LicenseSource } from '../../lib/license/verify-license.ts';
import type { Resource } from './resources.ts';
import { EMPTY_INDEX, indexText, withFirst } from './row-text.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

const BASE_PAGE = `<!DOCTYPE html>
<html lang="en">
<head><title>REST API v2</title></head>
<body><p>The REST API v2 is reachable and the API key is valid.</p></body>
</html>
`;

/** Refuses like a wrong key does while the licence is not valid. */
export function licensed(license: LicenseSource): Lifecycle.Method {
    return async (request, h) => {
        if (!(await fromSource(request, () => license.valid()))) {
            throw Boom.forbidden(DENIAL);
        }

        return h.continue;
    };
}

export const base: Lifecycle.Method = (_request, h) => h.response(BASE_PAGE).type('text/html; charset=utf-8');

export const unknownRoute: Lifecycle.Method = () => {
    throw Boom.notFound();
};

/** One row, as text. */
export function show({ rows, rowText }: Resource): Lifecycle.Method {
    return async (request, h) => {
        const path = idsOf(request);
        const id = path.at(-1) ?? 0;
        const row = await fromSource(request, () => rows.get(path.slice(0, -1), id));
        if (row === null) {
            throw Boom.notFound();
        }

        return h.response(rowText([row])).type(JSON_TYPE);
    };
}

/**
 * All rows, streamed. The first batch is taken before the answer begins, so that a store that fails is a proper error; after
 * that a failure can only break the connection, and must: a cut answer never looks complete.
 */
export function index({ rows, parents, rowText }: Resource): Lifecycle.Method {
    return async (request, h) => {
        const path = idsOf(request);
        const signal = untilClosed(request);
        const texts = indexText(() => rows.list(path, { signal }), rowText);
        const first = await fromSource(request, () => texts.next());
        if (first.value === EMPTY_INDEX && parents !== null && !(await exists(request, parents, path))) {
            throw Boom.notFound();
        }

        return h.response(Readable.from(withFirst(first, texts), { objectMode: false })).type(JSON_TYPE);
    };
}

async function exists(request: Request, parents: NonNullable<Resource['parents']>, path: readonly number[]): Promise<boolean> {
    const id = path.at(-1) ?? 0;
    return (await fromSource(request, () => parents.get(path.slice(0, -1), id))) !== null;
}

function idsOf(request: Request): readonly number[] {
    const ids = pathIds(request.paramsArray as string[]);
    if (ids === null) {
        throw Boom.notFound();
    }

    return ids;
}

/**
 * Aborts when the connection of the request is done with. Destroying the stream alone would not reach a store that waits for
 * its next batch: a generator ends only between two of them.
 */
function untilClosed(request: Request): AbortSignal {
    const controller = new AbortController();
    request.raw.res.once('close', () => controller.abort());
    return controller.signal;
}

/** What `ask` resolves to. When it fails, the client gets a 503 that says nothing of the cause; the cause goes to the log. */
async function fromSource<T>(request: Request, ask: () => T | Promise<T>): Promise<T> {
    try {
        return await ask();
    } catch (cause) {
        request.log(['rest-api-v2', 'error'], cause as Error);
        throw Boom.serverUnavailable('The data cannot be read now; try again later');
    }
}

const PLAIN_DECIMAL = /^(?:0|[1-9]\d{0,9})$/;
const MAX_ID = 2_147_483_647;

/** The ids of a path, from the outside in; null unless each is a plain decimal number of 32 bits: no row has another id. */
function pathIds(segments: readonly string[]): readonly number[] | null {
    const ids = segments.map((segment) => (PLAIN_DECIMAL.test(segment) ? Number(segment) : Number.NaN));
    return ids.every((id) => id <= MAX_ID) ? ids : null;
}
