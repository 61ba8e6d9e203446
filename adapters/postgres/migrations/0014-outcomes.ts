import type { Migration } from '../migrate.ts';

/**
 * Deliveries by their last outcome. What was delivered is left out: it is most of what is kept, is found soon by walking back from the
 * newest, and so costs nothing when it is recorded. The index is made by one scan of the table, in which it takes few rows.
 */
export const outcomes: Migration = {
    id: '0014-outcomes',
    sql: `
create index deliveries_outcome on scanwire.deliveries (last_code, seq) where last_code <> 'delivered';
`,
};
