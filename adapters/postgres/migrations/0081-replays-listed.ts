import type { IndexMigration } from '../migrate.ts';

/** Replays are kept as long as deliveries: the newest of all, those of some exporters, and those that ended long ago are each read without the others. */
export const replaysListed: readonly IndexMigration[] = [
    { id: '0081-replays-listed-1-newest', index: { name: 'replays_seq', table: 'replays', keys: '(seq)' } },
    { id: '0081-replays-listed-2-of-exporters', index: { name: 'replays_exporter', table: 'replays', keys: '(exporter_id, seq)' } },
    {
        id: '0081-replays-listed-3-finished',
        index: { name: 'replays_finished', table: 'replays', keys: '(finished_at) where finished_at is not null' },
    },
];
