import type { Command } from 'commander';
import type { Host, HostState } from '../../lib/inventory/host.ts';
import type { HostsPage, HostsQuery, ShownHost } from '../../lib/inventory/host-pages.ts';
import type { RemovedHosts } from '../../lib/inventory/store.ts';
import { printable } from '../../lib/printable.ts';
import { type Answer, command, definedFields } from '../command.ts';
import { moment, wholeNumber } from '../option-values.ts';
import { aligned, relativeTime, table } from '../output/table.ts';

export function define(hosts: Command): void {
    const list = command(hosts, 'list', 'list the hosts of a workspace', async ({ options, perform }) => {
        const { address, state, search, after, limit } = options;
        const query = definedFields<Omit<HostsQuery, 'workspace' | 'services'>>({ address, state, search, after, limit });
        const page = await perform('listHosts', { ...query, workspace: String(options.workspace) });
        return { json: page, text: () => pageText(page) };
    });
    inWorkspace(list)
        .option('--address <range>', 'only those of an address, a block such as 192.0.2.0/24, or a range')
        .addOption(list.createOption('--state <state>', 'only those in this state').choices(HOST_STATES))
        .option('--search <text>', 'only those with it in a name, an address, an operating system, the information or the comments')
        .option('--after <id>', 'continue behind the page before', wholeNumber(0, 2_147_483_647))
        .option('--limit <n>', 'at most so many', wholeNumber(1, 500), 100);

    const show = command(hosts, 'show <address>', 'show a host with all that is known of it', async ({ args, options, perform }) => {
        const host = await perform('showHost', { workspace: String(options.workspace), address: args[0] ?? '' });
        return { json: host, text: () => hostText(host) };
    });
    inWorkspace(show);

    const move = command(hosts, 'move <id...>', 'move hosts into another workspace, with all that is below them', async (call) => {
        const [ids, to] = [call.args.map(Number), String(call.options.to)];
        const moved = await call.perform('moveHosts', { ids, to });
        return { json: moved, text: () => `Moved ${hostsText(moved)} to ${printable(to)}` };
    });
    move.requiredOption('--to <workspace>', 'workspace that they go into, which must be there');

    const remove = command(
        hosts,
        'remove <range>',
        'remove the hosts of an address, a block or a range',
        async ({ args, options, perform }) => {
            const [workspace, dryRun] = [String(options.workspace), options.dryRun === true];
            return removedAnswer(await perform('removeHosts', { workspace, address: args[0] ?? '', dryRun }), workspace, dryRun);
        },
    );
    inWorkspace(remove).option('--dry-run', 'only say how many that would be');

    const expire = command(hosts, 'expire', 'remove the hosts that no scan has seen for a while', async ({ options, perform }) => {
        const [workspace, dryRun] = [String(options.workspace), options.dryRun === true];
        const expired = await perform('expireHosts', { workspace, notSeenSince: options.notSeen as Date, dryRun });
        return removedAnswer(expired, workspace, dryRun);
    });
    expire.requiredOption('--not-seen <when>', 'not since then: 90d ago, or a time such as 2027-01-31T00:00Z', moment(-1));
    inWorkspace(expire).option('--dry-run', 'only say how many that would be');
}

/** Of this list, for its schema is not loaded. */
const HOST_STATES = Object.keys({ alive: true, down: true, unknown: true } satisfies Record<HostState, true>);

function inWorkspace(self: Command): Command {
    return self.option('--workspace <name>', 'workspace that they are in', 'default');
}

function removedAnswer(removed: RemovedHosts, workspace: string, dryRun: boolean): Answer {
    return { json: removed, text: () => `${dryRun ? 'Would remove' : 'Removed'} ${hostsText(removed)} of ${printable(workspace)}` };
}

/** How many hosts, in words. */
export function hostsText({ hosts }: RemovedHosts): string {
    return hosts === 1 ? '1 host' : `${hosts.toLocaleString('en')} hosts`;
}

async function pageText({ hosts, next }: HostsPage): Promise<string> {
    const cells = hosts.map((host) => [
        String(host.id),
        host.address,
        host.name === host.address ? '' : host.name,
        host.state,
        systemOf(host),
        String(host.service_count),
        String(host.vuln_count),
        relativeTime(host.updated_at, new Date()),
    ]);
    const text = await table(['ID', 'ADDRESS', 'NAME', 'STATE', 'SYSTEM', 'SERVICES', 'VULNS', 'CHANGED'], cells, 'No hosts.');
    return next === null ? text : `${text}\n\nMore with --after ${next}`;
}

function systemOf({ os_name, os_flavor, os_sp }: Host): string {
    return [os_name, os_flavor, os_sp].filter((part) => part !== '').join(' ');
}

async function hostText(host: ShownHost): Promise<string> {
    const facts: [string, string | null][] = [
        ['ID', String(host.id)],
        ['Address', host.address],
        ['Name', host.name],
        ['State', host.state],
        ['MAC', host.mac],
        ['System', systemOf(host)],
        ['Arch', host.arch ?? host.detected_arch],
        ['Purpose', host.purpose],
        ['Info', host.info],
        ['Comments', host.comments],
        ['Changed', relativeTime(host.updated_at, new Date())],
    ];
    const ports = new Map(host.services.map(({ id, port, proto }) => [id, `${port}/${proto}`]));
    const on = ({ service_id }: { readonly service_id: number | null }): string => ports.get(service_id ?? 0) ?? '';
    const vulns = host.vulns.map((vuln) => [on(vuln), vuln.name, vuln.info ?? '']);
    const notes = host.notes.map((note) => [on(note), note.ntype ?? '', JSON.stringify(note.data)]);
    const parts = [
        await aligned(facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, value]]))),
        await table(
            ['PORT', 'STATE', 'SERVICE', 'INFO'],
            host.services.map(({ id, state, name, info }) => [ports.get(id) ?? '', state, name, info ?? '']),
            'No services.',
        ),
        await table(['PORT', 'VULNERABILITY', 'INFO'], vulns, ''),
        await table(['PORT', 'NOTE', 'DATA'], notes, ''),
    ];
    return parts.filter((part) => part !== '').join('\n\n');
}
