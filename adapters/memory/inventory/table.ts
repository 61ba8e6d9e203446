/** The parent of rows that have none. */
export const ROOT = 0;

/** Of any table. */
export type Row = { readonly id: number };

/** Rows of one resource, each below one parent. */
export interface Table<R extends Row> {
    /** Adds a row with the next id, counted from 1. With a key it can be found below its parent. */
    insert(parent: number, make: (id: number) => R, key?: string): R;
    replace(row: R): R;
    /** Puts a row below another parent, with the key that it is found by there. */
    move(row: R, parent: number, key: string): void;
    remove(id: number): void;
    get(id: number): R | undefined;
    find(parent: number, key: string): R | undefined;
    /** Id of the parent; undefined when there is no such row. */
    parentOf(id: number): number | undefined;
    /** Ids below a parent, ascending. */
    idsBelow(parent: number): readonly number[];
    /** Notes how all is, and gives what brings that back. */
    save(): () => void;
    /** How often rows were written, but for what was brought back. */
    changes(): number;
}

/** An empty table. */
export function table<R extends Row>(): Table<R> {
    let rows = new Map<number, R>();
    let parents = new Map<number, number>();
    let children = new Map<number, number[]>();
    let idsByKey = new Map<string, number>();
    let keys = new Map<number, string>();
    let last = 0;
    let changes = 0;

    /** Another list, since somebody may be reading the old one. */
    function withdraw(id: number): void {
        const parent = parents.get(id) ?? ROOT;
        children.set(
            parent,
            (children.get(parent) ?? []).filter((child) => child !== id),
        );
        idsByKey.delete(keys.get(id) ?? '');
    }

    return {
        insert(parent, make, key) {
            changes += 1;
            last += 1;
            const row = make(last);
            const siblings = children.get(parent) ?? [];
            siblings.push(row.id);
            children.set(parent, siblings);
            parents.set(row.id, parent);
            rows.set(row.id, row);
            if (key !== undefined) {
                idsByKey.set(`${parent} ${key}`, row.id);
                keys.set(row.id, `${parent} ${key}`);
            }

            return row;
        },

        replace(row) {
            changes += 1;
            rows.set(row.id, row);
            return row;
        },

        move(row, parent, key) {
            changes += 1;
            withdraw(row.id);
            children.set(
                parent,
                [...(children.get(parent) ?? []), row.id].sort((one, other) => one - other),
            );
            parents.set(row.id, parent);
            rows.set(row.id, row);
            idsByKey.set(`${parent} ${key}`, row.id);
            keys.set(row.id, `${parent} ${key}`);
        },

        remove(id) {
            changes += 1;
            withdraw(id);
            parents.delete(id);
            rows.delete(id);
            keys.delete(id);
        },

        get: (id) => rows.get(id),
        find: (parent, key) => rows.get(idsByKey.get(`${parent} ${key}`) ?? 0),
        parentOf: (id) => parents.get(id),
        idsBelow: (parent) => children.get(parent) ?? [],

        save() {
            const kept = {
                rows: new Map(rows),
                parents: new Map(parents),
                idsByKey: new Map(idsByKey),
                keys: new Map(keys),
                last,
                changes,
            };
            const siblings = new Map([...children].map(([parent, ids]) => [parent, [...ids]]));
            return () => {
                ({ rows, parents, idsByKey, keys, last, changes } = kept);
                children = siblings;
            };
        },

        changes: () => changes,
    };
}
