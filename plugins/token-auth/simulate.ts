import type { ServerInjectOptions } from '@hapi/hapi';
import type { TokenCredentials } from './types.ts';

const ANYBODY: TokenCredentials = { id: '00000000-0000-4000-8000-000000000000', name: 'simulated' };

/**
 * For tests of a host's own routes: the `auth` of `server.inject` as if a valid key had been sent.
 *
 * @example
 * await server.inject({ url: '/reports', auth: simulate({ name: 'nightly job' }) });
 */
export function simulate(credentials: Partial<TokenCredentials> = {}, strategy = 'token'): NonNullable<ServerInjectOptions['auth']> {
    const simulated: object = { ...ANYBODY, ...credentials };
    return { strategy, credentials: simulated };
}
