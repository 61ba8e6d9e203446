import type { Command } from 'commander';
import { type ApiKeyScope, DEFAULT_SCOPES, SCOPES } from '../../lib/keys/scopes.ts';
import { command, repeated } from '../command.ts';
import { aligned, relativeTime, table } from '../output/table.ts';

export function define(keys: Command): void {
    command(keys, 'create <name>', 'make a key and show it', async ({ args: [name = ''], options, perform }) => {
        const scopes = options.scope as readonly ApiKeyScope[] | undefined;
        const key = await perform('createKey', { name, ...(scopes && { scopes }) });
        return {
            json: key,
            text: () =>
                aligned([
                    ['Key', key.key],
                    ['Id', key.id],
                    ['Name', key.name],
                ]),
        };
    }).option('--scope <scope>', `what it may do: ${SCOPES.join(', ')}; repeatable (default: ${DEFAULT_SCOPES.join(', ')})`, repeated);

    command(keys, 'list', 'list all keys, revoked ones included', async ({ perform }) => {
        const all = await perform('listKeys', {});
        return {
            json: all,
            text: () =>
                table(
                    ['ID', 'NAME', 'KEY', 'SCOPES', 'CREATED', 'LAST USED', 'STATE'],
                    all.map(({ id, name, start, scopes, createdAt, lastUsedAt, revokedAt }) => [
                        id,
                        name,
                        `${start}…`,
                        scopes.join(' '),
                        relativeTime(createdAt, new Date()),
                        relativeTime(lastUsedAt, new Date()),
                        revokedAt === null ? 'valid' : 'revoked',
                    ]),
                    'No API keys. Make one with: scanwire keys create NAME',
                ),
        };
    });

    command(keys, 'reveal <id>', 'show a key again', async ({ args: [id = ''], perform }) => {
        const key = await perform('revealKey', { id });
        return { json: key, text: () => key.key };
    });

    command(keys, 'revoke <id>', 'refuse a key from now on, for good', async ({ args: [id = ''], perform }) => {
        const revoked = await perform('revokeKey', { id });
        return { json: revoked, text: () => `Revoked ${revoked.id}` };
    });
}
