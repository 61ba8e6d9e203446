import type { Request } from '@hapi/hapi';

/*
 * Which site has a browser send a request, with the cookies of somebody who is signed in. What the browser says itself counts: behind a proxy
 * the server may be called otherwise than in the address. Programs say nothing, nor do browsers over plain http.
 */

/** Whether the browser says that a page of this server sends the request. Over plain http it says no more than the origin; one that says neither is not let in. */
export function isFromHere({ headers }: Pick<Request, 'headers'>): boolean {
    const site = headers['sec-fetch-site'];
    if (site !== undefined) {
        return site === 'same-origin';
    }

    const origin = String(headers.origin);
    return URL.canParse(origin) && new URL(origin).host === headers.host;
}

/** Whether the browser says that another site has it ask for something: by a link, a picture, a frame. An address that was typed is nobody's. */
export function isLedFromElsewhere({ method, headers }: Pick<Request, 'method' | 'headers'>): boolean {
    const site = headers['sec-fetch-site'];
    return (method === 'get' || method === 'head') && site !== undefined && site !== 'same-origin' && site !== 'none';
}

/** What an operation rejects with that is not for a browser which another site has led there. */
export class LedFromElsewhere extends Error {
    constructor() {
        super('Another site has led here: open it from a page of this server, or type its address');
    }
}
