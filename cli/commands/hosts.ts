import type { Command } from 'commander';
import { command, moment } from '../command.ts';
import { printable } from '../output/table.ts';

export function define(hosts: Command): void {
    command(hosts, 'expire', 'remove the hosts that no scan has seen for a while', async ({ options, perform }) => {
        const [workspace, dryRun] = [String(options.workspace), options.dryRun === true];
        const expired = await perform('expireHosts', { workspace, notSeenSince: options.notSeen as Date, dryRun });
        const count = expired.hosts.toLocaleString('en');
        return { json: expired, text: () => `${dryRun ? 'Would remove' : 'Removed'} ${count} hosts of ${printable(workspace)}` };
    })
        .requiredOption('--not-seen <when>', 'not since then: 90d ago, or a time such as 2027-01-31T00:00Z', moment(-1))
        .option('--workspace <name>', 'workspace that they are in', 'default')
        .option('--dry-run', 'only say how many that would be');
}
