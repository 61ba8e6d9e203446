import type { Command } from 'commander';
import type { ListedAttemptView } from '../../plugins/admin-console/operations.ts';
import { command } from '../command.ts';
import { countText, table, utcTime } from '../output/table.ts';
import { endCells, filterOf, withFilter } from './deliveries.ts';

/** Loaded apart from `deliveries`, as every command is. */
export function define(attempts: Command): void {
    const summary = 'list attempts that have ended: of the newest deliveries first, and of each the last ones';
    const list = command(attempts, 'list', summary, async ({ options, perform }) => {
        const { delivery } = options;
        const filter = { ...filterOf(options), ...(delivery !== undefined && { deliveryId: String(delivery) }) };
        if (options.count === true) {
            const counted = await perform('countAttempts', filter);
            return { json: counted, text: () => countText(counted) };
        }
        const found = await perform('listAttempts', { ...filter, limit: Number(options.limit) });
        return { json: found, text: () => attemptsTable(found) };
    });
    withFilter(list, { of: 'of deliveries ', began: 'begun', outcome: 'that came to this', after: 'attempt' });
    list.option('--delivery <id>', 'only those of this delivery');
}

function attemptsTable(attempts: readonly ListedAttemptView[]): Promise<string> {
    return table(
        ['ID', 'KIND', 'EXPORTER', 'STARTED', 'STATUS', 'OUTCOME', 'TOOK', 'DETAIL'],
        attempts.map((attempt) => {
            const { id, kind, exporterId, startedAt } = attempt;
            return [id, kind, exporterId, utcTime(startedAt), ...endCells(attempt)];
        }),
        'No attempts.',
    );
}
