import type { Command } from 'commander';
import { command } from '../command.ts';
import { printable, table } from '../output/table.ts';

export function define(workspaces: Command): void {
    command(workspaces, 'list', 'list workspaces', async ({ perform }) => {
        const all = await perform('listWorkspaces', {});
        const cells = all.map(({ id, name, boundary, description }) => [String(id), name, boundary ?? '', description ?? '']);
        return { json: all, text: () => table(['ID', 'NAME', 'BOUNDARY', 'DESCRIPTION'], cells, 'No workspaces.') };
    });

    command(workspaces, 'remove <name>', 'remove a workspace with all that is in it', async ({ args: [name = ''], perform }) => {
        const removed = await perform('removeWorkspace', { name });
        return { json: removed, text: () => `Removed ${printable(name)} with ${removed.hosts.toLocaleString('en')} hosts` };
    });
}
