import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';

/** What `ask` resolves to. When it fails, the client gets a 503 that says nothing of the cause; the cause goes to the log. */
export async function fromSource<T>(request: Request, ask: () => T | Promise<T>): Promise<T> {
    try {
        return await ask();
    } catch (cause) {
        request.log(['rest-api-v2', 'error'], cause as Error);
        throw Boom.serverUnavailable('The data cannot be read now; try again later');
    }
}
