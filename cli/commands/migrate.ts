import type { Command } from 'commander';
import { performing } from '../command.ts';

export function define(self: Command): void {
    performing(self, async ({ perform }) => {
        const migrated = await perform('migrate', {});
        const { applied } = migrated;
        return { json: migrated, text: () => (applied.length === 0 ? 'The database is up to date' : `Migrated: ${applied.join(', ')}`) };
    });
}
