import type { Command } from 'commander';
import { command } from '../command.ts';
import { migrate } from '../operations.ts';

export function addMigrate(program: Command): void {
    command(program, 'migrate', 'bring the database up to this version', async ({ perform }) => {
        const migrated = await perform(migrate, {});
        const { applied } = migrated;
        return { json: migrated, text: () => (applied.length === 0 ? 'The database is up to date' : `Migrated: ${applied.join(', ')}`) };
    });
}
