import type { Command } from 'commander';
import type { ShownWorkspace } from '../../lib/inventory/host-pages.ts';
import type { WorkspaceChanges } from '../../lib/inventory/store.ts';
import { printable } from '../../lib/printable.ts';
import { type Answer, type Call, command, definedFields } from '../command.ts';
import { aligned, relativeTime, table } from '../output/table.ts';
import { hostsText } from './hosts.ts';

export function define(workspaces: Command): void {
    command(workspaces, 'list', 'list workspaces', async ({ perform }) => {
        const all = await perform('listWorkspaces', {});
        const cells = all.map(({ id, name, boundary, limit_to_network, description }) => [
            String(id),
            name,
            boundary ?? '',
            limit_to_network ? 'yes' : '',
            description ?? '',
        ]);
        return { json: all, text: () => table(['ID', 'NAME', 'BOUNDARY', 'LIMITED', 'DESCRIPTION'], cells, 'No workspaces.') };
    });

    command(workspaces, 'show <name>', 'show a workspace, and how much it holds', async ({ args: [name = ''], perform }) => {
        const workspace = await perform('showWorkspace', { name });
        return { json: workspace, text: () => workspaceText(workspace) };
    });

    command(workspaces, 'update <name>', 'change what a workspace is limited to', updated)
        .option('--boundary <ranges>', 'addresses, blocks and ranges with commas between them')
        .option('--no-boundary', 'none')
        .option('--limit-to-network', 'imports leave out the hosts outside of the boundary')
        .option('--no-limit-to-network', 'they take all hosts');

    command(workspaces, 'rename <name> <new-name>', 'give a workspace another name', async ({ args: [name = '', to = ''], perform }) => {
        const workspace = await perform('renameWorkspace', { name, to });
        return { json: workspace, text: () => `${printable(name)} is ${printable(workspace.name)} from now on` };
    });

    command(workspaces, 'remove <name>', 'remove a workspace with all that is in it', async ({ args: [name = ''], perform }) => {
        const removed = await perform('removeWorkspace', { name });
        return { json: removed, text: () => `Removed ${printable(name)} with ${hostsText(removed)}` };
    });
}

async function workspaceText(workspace: ShownWorkspace): Promise<string> {
    const { boundary, description, limit_to_network } = workspace;
    const counts = (['hosts', 'services', 'notes', 'vulns'] as const).flatMap((kind) => {
        const count = workspace[kind];
        return count === null ? [] : [[`${kind[0]?.toUpperCase()}${kind.slice(1)}`, count.toLocaleString('en')] as [string, string]];
    });
    const facts: [string, string | null][] = [
        ['ID', String(workspace.id)],
        ['Name', workspace.name],
        ['Description', description],
        ['Boundary', boundary],
        ['Limited', limit_to_network ? 'yes' : null],
        ...counts,
        ['Changed', relativeTime(workspace.updated_at, new Date())],
    ];
    return await aligned(facts.filter((fact): fact is [string, string] => fact[1] !== null));
}

async function updated({ args: [name = ''], options, perform }: Call): Promise<Answer> {
    const boundary = options.boundary === false ? null : options.boundary;
    const changes = definedFields<WorkspaceChanges>({ boundary, limit_to_network: options.limitToNetwork });
    const workspace = await perform('updateWorkspace', { ...changes, name });
    const within = workspace.boundary === null ? 'has no boundary' : `has the boundary ${printable(workspace.boundary)}`;
    const limited = workspace.limit_to_network ? 'imports leave out what is outside' : 'imports take all hosts';
    return { json: workspace, text: () => `${printable(workspace.name)} ${within}; ${limited}` };
}
