import type { Command } from 'commander';
import type { Host } from '../../lib/inventory/host.ts';
import type { HostsPage, HostsQuery, ShownHost } from '../../lib/inventory/host-pages.ts';
import type { RemovedHosts } from '../../lib/inventory/store.ts';
import { type Answer, command, definedFields, moment, wholeNumber } from '../command.ts';
import { aligned, printable, relativeTime, table } from '../output/table.ts';

export function define(hosts: Command): void {
    const list = command(hosts, 'list', 'list the hosts of a workspace', async ({ options, perform }) => {
        const { address, state, search, after, limit } = options;
        const query = definedFields<Omit<HostsQuery, 'workspace' | 'services'>>({ address, state, search, after, limit });
        const page = await perform('listHosts', { ...query, workspace: String(options.workspace) });
        return { json: page, text: () => pageText(page) };
    });
    inWorkspace(list)
        .option('--address <range>', 'only those of an address, a block such as 192.0.2.0/24, or a range')
        .option('--state <state>', 'only those in this state: alive, down or unknown')
        .option('--search <text>', 'only those with it in a name, an address, an operating system, the information or the comments')
        .option('--after <id>', 'continue behind the page before', wholeNumber(0, 2_147_483_647))
        .option('--limit <n>', 'at most so many', wholeNumber(1, 500), 100);

    const show = command(hosts, 'show <address>', 'show a host with all that is known of it', async ({ args, options, perform }) => {
        const host = await perform('showHost', { workspace: String(options.workspace), address: args[0] ?? '' });
        return { json: host, text: () => hostText(host) };
    });
    inWorkspace(show);

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

function inWorkspace(self: Command): Command {
    return self.option('--workspace <name>', 'workspace that they are in', 'default');
}

function removedAnswer(removed: RemovedHosts, workspace: string, dryRun: boolean): Answer {
    const count = removed.hosts.toLocaleString('en');
    return { json: removed, text: () => `${dryRun ? 'Would remove' : 'Removed'} ${count} hosts of ${printable(workspace)}` };
}

async function pageText({ hosts, next }: HostsPage): Promise<string> {
    const cells = hosts.map((host) => [
        host.address,
        host.name === host.address ? '' : host.name,
        host.state,
        systemOf(host),
        String(host.service_count),
        String(host.vuln_count),
        relativeTime(host.updated_at, new Date()),
    ]);
    const text = await table(['ADDRESS', 'NAME', 'STATE', 'SYSTEM', 'SERVICES', 'VULNS', 'CHANGED'], cells, 'No hosts.');
    return next === null ? text : `${text}\n\nMore with --after ${next}`;
}

function systemOf({ os_name, os_flavor, os_sp }: Host): string {
    return [os_name, os_flavor, os_sp].filter((part) => part !== '').join(' ');
}

async function hostText(host: ShownHost): Promise<string> {
    const facts: [string, string | null][] = [
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
    const parts = [
        await aligned(facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, value]]))),
        await table(
            ['PORT', 'STATE', 'SERVICE', 'INFO'],
            host.services.map(({ port, proto, state, name, info }) => [`${port}/${proto}`, state, name, info ?? '']),
            'No services.',
        ),
        ...(host.vulns.length === 0
            ? []
            : [
                  await table(
                      ['VULNERABILITY', 'INFO'],
                      host.vulns.map(({ name, info }) => [name, info ?? '']),
                      '',
                  ),
              ]),
        ...(host.notes.length === 0
            ? []
            : [
                  await table(
                      ['NOTE', 'DATA'],
                      host.notes.map(({ ntype, data }) => [ntype ?? '', JSON.stringify(data)]),
                      '',
                  ),
              ]),
    ];
    return parts.join('\n\n');
}
