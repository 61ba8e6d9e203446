import type { Migration } from '../migrate.ts';

/**
 * For the last delivery without a kind. It need not be from before the migration `0065-listed`: what was being accepted then, and waited for its end,
 * was stored after it and has none either.
 *
 * The index holds such deliveries only. Writers wait while it is made, for as long as it takes to read all deliveries once.
 */
export const withoutKind: Migration = {
    id: '0073-without-kind',
    sql: 'create index deliveries_without_kind on scanwire.deliveries (kind, seq) where kind is null;\n',
};
