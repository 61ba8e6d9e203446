import type { StoredApiKey } from './store.ts';

/** What a key may do. */
export type ApiKeyScope =
    | 'inventory:read'
    | 'secrets:read'
    | 'records:read'
    | 'records:write'
    | 'deliveries:read'
    | 'events:publish'
    | 'admin';

/** All scopes there are. */
export const SCOPES: readonly ApiKeyScope[] = [
    'inventory:read',
    'secrets:read',
    'records:read',
    'records:write',
    'deliveries:read',
    'events:publish',
    'admin',
];

/** What a new key may do when nothing is said. */
export const DEFAULT_SCOPES: readonly ApiKeyScope[] = ['inventory:read'];

/** What keys had in effect before there were scopes, and what those of a store have that knows nothing of scopes. */
export const UNSCOPED: readonly ApiKeyScope[] = ['inventory:read', 'records:read', 'records:write'];

/** More than its scopes must never come of a row that a store got wrong: only a store that knows nothing of scopes may leave them out. */
export function scopesOf({ scopes }: Pick<StoredApiKey, 'scopes'>): readonly ApiKeyScope[] {
    if (scopes === undefined) {
        return UNSCOPED;
    }

    return Array.isArray(scopes) ? SCOPES.filter((scope) => scopes.includes(scope)) : [];
}
