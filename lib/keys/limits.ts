import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { MAX_ID } from '../inventory/fields.ts';
import { nameSchema, storableTime } from '../schema-validation.ts';
import { type ApiKeyScope, SCOPES, scopesOf } from './scopes.ts';
import type { ApiKeyStore, StoredApiKey } from './store.ts';

/** The workspaces that a key sees; null for all. Like {@link scopesOf}, a row that a store got wrong sees none. */
export function workspacesOf({ workspaces }: Pick<StoredApiKey, 'workspaces'>): readonly number[] | null {
    if (workspaces === undefined || workspaces === null) {
        return null;
    }

    return Array.isArray(workspaces) ? workspaces.filter((id) => Number.isInteger(id)) : [];
}

/** What the store says that it keeps of each key, and does not tell of this one; null where it tells all. */
export function lostOf({ keepsScopes, keepsLimits }: ApiKeyStore, stored: StoredApiKey): 'scopes' | 'workspaces' | 'expiresAt' | null {
    if (keepsScopes === true && stored.scopes === undefined) {
        return 'scopes';
    }
    if (keepsLimits !== true) {
        return null;
    }

    return stored.workspaces === undefined ? 'workspaces' : stored.expiresAt === undefined ? 'expiresAt' : null;
}

/** What a key may do, and where: nothing and nowhere for a store that has lost some of it. */
export function mayOf(
    store: ApiKeyStore,
    stored: StoredApiKey,
): { readonly scopes: readonly ApiKeyScope[]; readonly workspaces: readonly number[] | null } {
    return lostOf(store, stored) === null ? { scopes: scopesOf(stored), workspaces: workspacesOf(stored) } : { scopes: [], workspaces: [] };
}

/** Whether a key is refused by now: revoked, or at its end by the store's time. One with an end that the store tells nothing of is. */
export function isOver({ revokedAt, expiresAt, expired }: StoredApiKey): boolean {
    return revokedAt !== null || expired === true || ((expiresAt ?? null) !== null && expired !== false);
}

/** What a new key may be given. */
export interface NewKeyOptions {
    /** What the key may do, each scope once. Default `['inventory:read']`. */
    readonly scopes?: readonly ApiKeyScope[] | undefined;
    /** Ids of the only workspaces that the key sees, each once; they need not exist yet. Default all. */
    readonly workspaces?: readonly number[] | undefined;
    /** From when on the key is refused, by the store's time; must be in the future. Default never. */
    readonly expiresAt?: Date | undefined;
}

/** Scopes, each once. */
export const scopesSchema: Joi.ArraySchema = Joi.array()
    .items(Joi.string().valid(...SCOPES))
    .unique();

/** Ids of workspaces, each once. */
export const workspacesSchema: Joi.ArraySchema = Joi.array().items(Joi.number().integer().min(1).max(MAX_ID)).unique();

/** Name and {@link NewKeyOptions} of a new key. */
export const newKeySchema: Joi.ObjectSchema<{ name: string } & NewKeyOptions> = Joi.object<{ name: string } & NewKeyOptions>({
    name: nameSchema.trim().required(),
    scopes: scopesSchema.min(1),
    workspaces: workspacesSchema.min(1).max(1000),
    expiresAt: storableTime(),
});

/** @throws ScanwireError `INVALID_INPUT` for options that are none, such as a scope by itself. */
export function assertOptions(options: NewKeyOptions): NewKeyOptions {
    if (typeof options !== 'object' || Array.isArray(options)) {
        throw new ScanwireError('INVALID_INPUT', "options must be an object, such as { scopes: ['admin'] }", { field: 'options' });
    }

    return options;
}

/**
 * @throws ScanwireError `MISCONFIGURED`: a store that dropped them would give the key more than was asked for; `INVALID_INPUT` for an end
 *     that is past.
 */
export function assertKept(store: ApiKeyStore, { scopes, workspaces, expiresAt }: NewKeyOptions, now: Date): void {
    const dropped = [
        ...(store.keepsScopes === true ? [] : Object.entries({ scopes })),
        ...(store.keepsLimits === true ? [] : Object.entries({ workspaces, expiresAt })),
    ].find(([, value]) => value !== undefined);
    if (dropped !== undefined) {
        const [field] = dropped;
        throw new ScanwireError('MISCONFIGURED', `Cannot give the key ${field}: the store does not keep them`, { field });
    }

    if (expiresAt !== undefined && expiresAt <= now) {
        throw new ScanwireError('INVALID_INPUT', 'expiresAt must be in the future', { field: 'expiresAt' });
    }
}
