import Boom from '@hapi/boom';
import type { ServerAuthScheme } from '@hapi/hapi';
import type { ApiKeys, VerifiedApiKey } from '../../lib/keys/api-keys.ts';
import { DENIAL } from '../../lib/keys/denial.ts';

/** hapi has the names of headers in lower case, however they were sent. */
const HEADER = 'token';

/**
 * The scheme: the header `token` carries an API key. Whatever is wrong with it, the answer is the same 403; a header that
 * was sent twice reaches us joined by a comma and a space, which no key contains.
 */
export function tokenScheme(keys: ApiKeys): ServerAuthScheme {
    return () => ({
        async authenticate(request, h) {
            const key: unknown = request.headers[HEADER];
            if (typeof key !== 'string') {
                return h.unauthenticated(Boom.forbidden(DENIAL));
            }

            const credentials = await verified(keys, key);
            if (credentials === null) {
                return h.unauthenticated(Boom.forbidden(DENIAL));
            }

            return h.authenticated({ credentials: { ...credentials } });
        },
    });
}

async function verified(keys: ApiKeys, key: string): Promise<VerifiedApiKey | null> {
    try {
        return await keys.verify(key);
    } catch (cause) {
        throw Boom.boomify(new Error('The store of the API keys cannot be reached now', { cause }), { statusCode: 503 });
    }
}
