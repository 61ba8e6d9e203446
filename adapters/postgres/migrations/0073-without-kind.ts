import type { Migration } from '../migrate.ts';

/**
 * The last delivery without a kind is looked up, and is no longer the last from before the migration `0065-listed`: what was being accepted then,
 * and waited for its end, was stored after it and has none either. Lists by kind or time did not find it.
 *
 * The index holds such deliveries only. Writers wait while it is made, for as long as it takes to read all deliveries once.
 */
export const withoutKind: Migration = {
    id: '0073-without-kind',
    sql: 'create index deliveries_without_kind on scanwire.deliveries (kind, seq) where kind is null;\n',
};
