import type { Command } from 'commander';
import type { AuditEntry, AuditQuery } from '../../lib/audit/audit-trail.ts';
import { command, definedFields } from '../command.ts';
import { moment, wholeNumber } from '../option-values.ts';
import { table, utcTime } from '../output/table.ts';

export function define(audit: Command): void {
    command(audit, 'list', 'list what was changed, and by whom, newest first', async ({ options, perform }) => {
        const { since, until, actor, operation, after, limit } = options;
        const query = definedFields<Omit<AuditQuery, 'limit'>>({ since, until, actor, operation, after });
        const found = await perform('listAudit', { ...query, limit: Number(limit) });
        return { json: found, text: () => entriesTable(found) };
    })
        .option('--since <when>', 'only what began from then on: 12h or 7d ago, or a time such as 2027-01-31T00:00Z', moment(-1))
        .option('--until <when>', 'only what began before', moment(-1))
        .option('--actor <name>', 'only what this user did')
        .option('--operation <name>', 'only this operation, such as revokeKey')
        .option('--after <id>', 'continue below this entry')
        .option('--limit <n>', 'at most so many', wholeNumber(1, 1000), 100);
}

function entriesTable(entries: readonly AuditEntry[]): Promise<string> {
    return table(
        ['ID', 'BEGUN', 'ACTOR', 'OPERATION', 'SUBJECT', 'OUTCOME'],
        entries.map(({ id, at, actor, operation, subject, outcome }) => [
            id,
            utcTime(at),
            actor,
            operation,
            subject ?? '',
            outcome ?? 'unknown',
        ]),
        'Nothing was changed.',
    );
}
