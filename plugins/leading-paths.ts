/** Paths of requests that stand for others, decided before their route is looked for. */
import type { Request, Server } from '@hapi/hapi';

/** What is below a path of a server. */
interface PathsBelow {
    readonly base: string;
    isBelow(path: string): boolean;
    /** The path that the request's stands for, null where it is its own. */
    meant(request: Request): string | null;
}

/** By the servers' `plugins`, which all their copies share: each request of the host pays for an extension. */
const ofServers = new WeakMap<object, PathsBelow[]>();

/** Whether paths are below a path of the server, as its router compares them. @param base With the prefix of the routes. */
export function isBelowIn({ settings }: Server, base: string): (path: string) => boolean {
    const { isCaseSensitive = true } = settings.router ?? {};
    const folded = (path: string): string => (isCaseSensitive ? path : path.toLowerCase());
    const below = folded(`${base}/`);
    return (path) => folded(path).startsWith(below);
}

/**
 * Has what is below the base, and is no path of a URL, answered like any other path that leads nowhere, and not by the server with a 400 that needs no
 * key; and, where `meant` says so, a path as another one.
 *
 * @param base With the prefix of the routes.
 */
export function leadPathsBelow(server: Server, base: string, meant: (request: Request) => string | null = () => null): void {
    const paths = { base, isBelow: isBelowIn(server, base), meant };
    const known = ofServers.get(server.plugins);
    if (known !== undefined) {
        known.push(paths);
        return;
    }

    const all = [paths];
    ofServers.set(server.plugins, all);
    server.ext('onRequest', (request, h) => {
        const { url = '' } = request.raw.req;
        const isNone = url.includes('%') && !isDecodable(url.split('?', 1)[0] ?? '');
        for (const { base: path, isBelow, meant: meantBelow } of all) {
            const other = isNone && isBelow(url) ? `${path}/%25` : meantBelow(request);
            if (other !== null) {
                lead(request, other);
                break;
            }
        }
        return h.continue;
    });
}

/** Only to that path: of a backslash, or of a `Host` that is none, a URL makes another one. */
function lead(request: Request, path: string): void {
    const url = `http://${request.info.host || 'localhost'}${path}`;
    if (URL.canParse(url) && new URL(url).pathname === path) {
        request.setUrl(path + request.url.search);
    }
}

/** Whether a path can be read as text. */
export function isDecodable(path: string): boolean {
    try {
        decodeURIComponent(path);
        return true;
    } catch {
        return false;
    }
}
