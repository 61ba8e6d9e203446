import { createHash, randomBytes } from 'node:crypto';
import Boom from '@hapi/boom';
import type { Server } from '@hapi/hapi';

/** A key as a digest in a map, and the check that goes with it: what peers have in place of `token-auth`. */
export const key: string = randomBytes(32).toString('hex');

const digestOf = (token: unknown): string => createHash('sha256').update(String(token)).digest('base64');
const keys = new Map([[digestOf(key), { id: 1 }]]);

/** Who has the key of the header `token`; undefined for nobody. */
export function ownerOf(token: unknown): { readonly id: number } | undefined {
    return keys.get(digestOf(token));
}

/** Adds the strategy `key`. */
export function addKeyStrategy(server: Server): void {
    server.auth.scheme('key', () => ({
        authenticate(request, h) {
            const credentials = ownerOf(request.headers.token);
            return credentials === undefined ? h.unauthenticated(Boom.forbidden()) : h.authenticated({ credentials });
        },
    }));
    server.auth.strategy('key', 'key');
}
