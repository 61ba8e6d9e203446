import type { ApiKeySummary, RevealedApiKey } from '../../lib/keys/api-keys.ts';
import { type Operation, operation } from './operation.ts';

export const createKey: Operation<{ name: string }, RevealedApiKey> = operation({
    name: 'keys.create',
    method: 'POST',
    path: '/keys',
    creates: true,
    run: (system, { name }) => system.keys.create(name),
});

export const listKeys: Operation<object, readonly ApiKeySummary[]> = operation({
    name: 'keys.list',
    method: 'GET',
    path: '/keys',
    run: (system) => system.keys.list(),
});

export const revealKey: Operation<{ id: string }, RevealedApiKey> = operation({
    name: 'keys.reveal',
    method: 'GET',
    path: '/keys/{id}',
    run: (system, { id }) => system.keys.reveal(id),
});

export const revokeKey: Operation<{ id: string }, { readonly id: string; readonly revoked: true }> = operation({
    name: 'keys.revoke',
    method: 'DELETE',
    path: '/keys/{id}',
    async run(system, { id }) {
        await system.keys.revoke(id);
        return { id, revoked: true };
    },
});
