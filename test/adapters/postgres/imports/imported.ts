import type { HostInput } from '../../../../lib/inventory/host.ts';
import type { Collection } from '../../../../lib/inventory/store.ts';

/** The values one after the other. */
export async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
    yield* values;
}

/** So many hosts, each with an address of its own. */
export function manyHosts(count: number, name?: string): HostInput[] {
    const given = name === undefined ? {} : { name };
    return Array.from({ length: count }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}`, ...given }));
}

/** All rows below the path. */
export async function all<Row extends { readonly id: number }>(collection: Collection<Row>, parents: readonly number[]): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const batch of collection.list(parents)) {
        rows.push(...batch);
    }

    return rows;
}
