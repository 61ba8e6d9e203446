import { type Asked, frameworkRow, type ListName, listed, type Reader, related, type WholeInventory, workspaceHolding } from './rows.ts';

/** The row of an id, or none, in the framework's form. Its clients ask for an id alone: it means the same row whatever workspace that is in. */
export async function* rowOf(
    store: WholeInventory,
    name: ListName,
    asked: Asked & { readonly id: number },
    reader: Reader,
): AsyncIterable<readonly object[]> {
    if (name === 'workspaces' || asked.workspace !== undefined) {
        yield* shownRows(store, name, asked, reader);
        return;
    }

    const workspace = await workspaceHolding(store, name, asked.id, reader);
    if (workspace !== undefined) {
        yield* shownRows(store, name, { ...asked, workspace }, reader);
    }
}

/** The rows of a list that are asked for, in the framework's form. */
export async function* shownRows(store: WholeInventory, name: ListName, asked: Asked, reader: Reader): AsyncIterable<readonly object[]> {
    const rows = listed(store, name, asked, reader);
    if (name === 'workspaces' || name === 'hosts') {
        for await (const batch of rows) {
            yield batch.map((row) => frameworkRow(name, row));
        }
        return;
    }

    for await (const [batch, relations] of related(store, asked as { workspace: string | undefined }, rows, reader)) {
        yield batch.map((row) => frameworkRow(name, row, relations));
    }
}
