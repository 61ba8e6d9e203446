/** Paths of requests that stand for others, decided before their route is looked for. */
import type { Request, Server } from '@hapi/hapi';

/** What is below a path of a server. */
interface PathsBelow {
    readonly base: string;
    isBelow(path: string): boolean;
    /** The path that the request's stands for, null where it is its own. */
    meant(request: Request): string | null;
    /** Told of each request below, before anything else is. */
    arrived(request: Request): void;
}

/** By the servers' `plugins`, which all their copies share: each request of the host pays for what is looked at. */
const ofServers = new WeakMap<object, PathsBelow[]>();

/** Whether paths are below a path of the server, as its router compares them. @param base With the prefix of the routes. */
export function isBelowIn({ settings }: Server, base: string): (path: string) => boolean {
    const { isCaseSensitive = true } = settings.router ?? {};
    const folded = (path: string): string => (isCaseSensitive ? path : path.toLowerCase());
    const below = folded(`${base}/`);
    return (path) => folded(path).startsWith(below);
}

/** What else is done with the requests below a path. */
export type Leading = Partial<Pick<PathsBelow, 'meant' | 'arrived'>>;

/**
 * Has what is below the base, and is no path of a URL, answered like any other path that leads nowhere, and not by the server with a 400 that needs no
 * key; and, where `meant` says so, a path as another one.
 *
 * @param base With the prefix of the routes.
 */
export function leadPathsBelow(server: Server, base: string, { meant = () => null, arrived = () => {} }: Leading = {}): void {
    const paths = { base, isBelow: isBelowIn(server, base), meant, arrived };
    const known = ofServers.get(server.plugins);
    if (known !== undefined) {
        known.push(paths);
        return;
    }

    const all = [paths];
    ofServers.set(server.plugins, all);
    whenUrlIsSet(server, (request, url) => leadAll(request, url, all));
}

/** No application decorates its requests with this. */
const LED = Symbol('scanwire.led');

/**
 * Calls back with each request as it is made, and again when an extension of the application sets another URL, as it may before the route is looked for. An
 * extension of our own would take each request of the host longer than all that is done here.
 */
function whenUrlIsSet(server: Server, act: (request: Request, url: string) => void): void {
    function setUrl(this: Request, ...url: Parameters<Request['setUrl']>): void {
        setUrlOf(this, ...url);
        act(this, this.path);
    }

    const begin = (request: Request): true => {
        request.setUrl = setUrl;
        act(request, request.raw.req.url ?? '');
        return true;
    };
    server.decorate('request', LED, begin as never, { apply: true });
}

/** By hapi itself. */
function setUrlOf(request: Request, ...url: Parameters<Request['setUrl']>): void {
    (Object.getPrototypeOf(request) as Request).setUrl.apply(request, url);
}

function leadAll(request: Request, url: string, all: readonly PathsBelow[]): void {
    const isNone = url.includes('%') && !isDecodable(url.split('?', 1)[0] ?? '');
    for (const { base, isBelow, meant, arrived } of all) {
        if (isBelow(request.path)) {
            arrived(request);
        }
        const other = isNone && isBelow(url) ? `${base}/%25` : meant(request);
        if (other !== null) {
            lead(request, other);
            break;
        }
    }
}

/** Only to that path: of a backslash, or of a `Host` that is none, a URL makes another one. */
function lead(request: Request, path: string): void {
    const url = `http://${request.info.host || 'localhost'}${path}`;
    if (URL.canParse(url) && new URL(url).pathname === path) {
        try {
            setUrlOf(request, path + request.url.search);
        } catch {
            // Nobody would catch it. With the name of its server the path makes no URL; it leads to what it says.
        }
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
