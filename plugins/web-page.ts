/** Pages for people: what their browsers may load, and the files of others that they load from this server. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Server } from '@hapi/hapi';
import { assertNewEnough, withoutPackage } from '../lib/optional-packages.ts';
import { READABLE_COOKIES, unsniffed } from './route-parts.ts';

/** What a page may do beyond loading, and calling, what is this server's own. */
export interface PageRights {
    /** Where its forms may go: CSP sources, for example `'self'`. */
    readonly formAction: string;
    /** Who may show it in a frame: CSP sources. */
    readonly frameAncestors: string;
}

/** Only what is this server's own runs, is loaded and is called; pictures may be in a style sheet itself. No code stands in a page. */
export function contentPolicy({ formAction, frameAncestors }: PageRights): string {
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
        `form-action ${formAction}; frame-ancestors ${frameAncestors}`
    );
}

/** What a browser shows beside the title. Without one it asks the server for a file that is not there. */
export const ICON: string =
    "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E" +
    "%3Cpath d='M2 8h4l2-5 2 10 2-5h2' fill='none' stroke='%230172ad' stroke-width='2'/%3E%3C/svg%3E\">";

/**
 * Path of a file of an optional package.
 *
 * @param use What it is needed for.
 * @throws ScanwireError `MISCONFIGURED` with the line that installs the package, or a version of it that works.
 */
export function packagedFile(name: string, file: string, use: string): string {
    assertNewEnough(name, use);
    try {
        return fileURLToPath(import.meta.resolve(`${name}/${file}`));
    } catch (cause) {
        throw withoutPackage(name, use, cause);
    }
}

/** A file that pages load. */
export interface Asset {
    readonly path: string;
    readonly type: 'text/css' | 'text/javascript';
    readonly text: string;
}

/** An asset that a package brings. @throws ScanwireError as {@link packagedFile}, and when it cannot be read. */
export function packagedAsset(asset: Omit<Asset, 'text'>, ...from: Parameters<typeof packagedFile>): Asset {
    return { ...asset, text: readFileSync(packagedFile(...from), 'utf8') };
}

/** Serves assets to everybody: there is nothing in them but what the packages publish. */
export function addAssets(server: Server, assets: readonly Asset[]): void {
    for (const { path, type, text } of assets) {
        const tag = createHash('sha256').update(text).digest('base64url');
        server.route({
            method: 'GET',
            path,
            options: {
                auth: false,
                cors: false,
                cache: { otherwise: 'no-cache' },
                ext: { onPreResponse: unsniffed },
                state: READABLE_COOKIES,
            },
            handler: (_, h) => h.response(text).type(`${type}; charset=utf-8`).etag(tag),
        });
    }
}
