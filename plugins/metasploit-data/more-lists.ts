/** The lists that no store of ours has, from one of the host's. */
import * as Boom from '@hapi/boom';
import Joi from 'joi';
import { isObject } from '../../lib/schema-validation.ts';
import {
    type Asked,
    ofAddressesAndText,
    type Reader,
    type Row,
    type Rows,
    type WholeInventory,
    workspaceNamed,
    workspacesOf,
} from './rows.ts';

/** What a list is asked for. */
export interface MoreAsked {
    /** One that the key sees. */
    readonly workspace: { readonly id: number; readonly name: string };
    /** Aborts when nobody waits for the rows any more. */
    readonly signal: AbortSignal;
}

/** The rows of one workspace, in the order of their ids: objects in the framework's columns, which go out as they are. What it throws is a 503. */
export type MoreRows = (asked: MoreAsked) => ManyRows | Promise<ManyRows>;
type ManyRows = Iterable<object> | AsyncIterable<object>;

/** Lists of captured secrets; one that is left out is empty. */
export interface MoreLists {
    readonly loots?: MoreRows | undefined;
    readonly credentials?: MoreRows | undefined;
    readonly logins?: MoreRows | undefined;
}

/** What such a list is called. */
export type MoreName = keyof MoreLists;
/** Every one of them. */
export const MORE: readonly MoreName[] = ['loots', 'credentials', 'logins'];

/** Rule of the option `more`. */
export const moreSchema: Joi.ObjectSchema<MoreLists> = Joi.object<MoreLists>(
    Object.fromEntries(MORE.map((name) => [name, Joi.function()])),
);

/** Marks, as its data, the refusal of a key that is good otherwise: 403, while others are told 401 as with a wrong key. */
export const OF_A_GOOD_KEY: unique symbol = Symbol('of a good key');

/** As many rows go out together. */
const BATCH = 100;

/** What the lists are read with. */
export interface MoreSource {
    readonly store: WholeInventory;
    readonly more: MoreLists;
}

/**
 * The rows of a list of a workspace that are asked for; none where the host has no such list.
 *
 * @throws ScanwireError `NOT_FOUND`, field `workspace`; `INVALID_INPUT`, field `address`. Boom 403 for a key without the scope.
 */
export async function* moreRows(
    { store, more }: MoreSource,
    name: MoreName,
    asked: Asked,
    reader: Reader,
): AsyncIterable<readonly object[]> {
    const read = more[name];
    if (read !== undefined) {
        assertReadsSecrets(reader);
        const workspace = await workspaceNamed(store, asked.workspace, reader);
        yield* ofAddressesAndText(store, workspace.id, batchesOf(name, read, workspace, reader), { ...asked, id: undefined }, reader);
    }
}

/** The row of an id, or none, of any workspace that there is for the key where none is named. */
export async function* moreRowOf(
    source: MoreSource,
    name: MoreName,
    asked: Asked & { readonly id: number },
    reader: Reader,
): AsyncIterable<readonly object[]> {
    assertReadsSecrets(reader);
    const named = asked.workspace === undefined ? await namesSeen(source, reader) : [asked.workspace];
    for (const workspace of named) {
        for await (const batch of moreRows(source, name, { ...asked, workspace }, reader)) {
            const found = batch.find((row) => (row as Partial<Row>).id === asked.id);
            if (found !== undefined) {
                yield [found];
                return;
            }
        }
    }
}

function assertReadsSecrets({ readsSecrets }: Reader): void {
    if (!readsSecrets) {
        throw Boom.forbidden('The API key needs the scope secrets:read for what was captured', OF_A_GOOD_KEY);
    }
}

async function namesSeen({ store }: MoreSource, reader: Reader): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const batch of workspacesOf(store, reader)) {
        names.push(...batch.map((workspace) => String(workspace.name)));
    }
    return names;
}

async function* batchesOf(name: MoreName, read: MoreRows, { id, name: called }: MoreAsked['workspace'], { signal }: Reader): Rows {
    let batch: Row[] = [];
    for await (const row of await read({ workspace: { id, name: called }, signal })) {
        if (!isObject(row)) {
            throw new TypeError(`metasploit-data options: more.${name} must give rows that are objects, and gave another value`);
        }

        batch.push(row as Row);
        if (batch.length === BATCH) {
            yield batch;
            batch = [];
        }
    }
    yield batch;
}
