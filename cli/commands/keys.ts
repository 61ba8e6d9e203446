import type { Command } from 'commander';
import type { NewKeyOptions } from '../../lib/keys/limits.ts';
import { DEFAULT_SCOPES, SCOPES } from '../../lib/keys/scopes.ts';
import { command, commander, definedFields } from '../command.ts';
import { moment, wholeNumber } from '../option-values.ts';
import { aligned, relativeTime, table } from '../output/table.ts';

export function define(keys: Command): void {
    command(keys, 'create <name>', 'make a key and show it', async ({ args: [name = ''], options, perform }) => {
        const { scope: scopes, workspace: workspaces, expires: expiresAt } = options;
        const key = await perform('createKey', { name, ...definedFields<NewKeyOptions>({ scopes, workspaces, expiresAt }) });
        return {
            json: key,
            text: () =>
                aligned([
                    ['Key', key.key],
                    ['Id', key.id],
                    ['Name', key.name],
                ]),
        };
    })
        .option('--scope <scope>', `what it may do: ${SCOPES.join(', ')}; repeatable (default: ${DEFAULT_SCOPES.join(', ')})`, scopes)
        .option('--workspace <id>', 'the only workspace that it sees; repeatable (default: all)', workspaceIds)
        .option(
            '--expires <when>',
            'refuse it after so long, such as 12h or 90d, or from a time such as 2027-01-31T00:00Z (default: never)',
            moment(1),
        );

    command(keys, 'list', 'list all keys, revoked ones included', async ({ perform }) => {
        const all = await perform('listKeys', {});
        return {
            json: all,
            text: () =>
                table(
                    ['ID', 'NAME', 'KEY', 'SCOPES', 'WORKSPACES', 'CREATED', 'EXPIRES', 'LAST USED', 'STATE'],
                    all.map(({ id, name, start, scopes, workspaces, createdAt, expiresAt, expired, lastUsedAt, revokedAt }) => [
                        id,
                        name,
                        `${start}…`,
                        scopes.join(' '),
                        workspaces?.join(' ') ?? 'all',
                        relativeTime(createdAt, new Date()),
                        relativeTime(expiresAt, new Date()),
                        relativeTime(lastUsedAt, new Date()),
                        revokedAt === null ? (expired ? 'expired' : 'valid') : 'revoked',
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

/** Refused here, where no database need be made to know it. */
function scopes(text: string, before: readonly string[] = []): readonly string[] {
    if (!SCOPES.some((scope) => scope === text)) {
        throw new commander.InvalidArgumentError(`It must be one of ${SCOPES.join(', ')}.`);
    }

    return [...before, text];
}

const workspaceId = wholeNumber(1, Number.MAX_SAFE_INTEGER);

function workspaceIds(text: string, before: readonly number[] = []): readonly number[] {
    return [...before, workspaceId(text)];
}
