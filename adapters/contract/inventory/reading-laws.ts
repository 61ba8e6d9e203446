import assert from 'node:assert/strict';
import { assertFields, ids, inParallel, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { type AnyInventoryFixture, batches, type InventoryFixture, type InventoryLaws, MANY, rows } from './fixture.ts';
import { type KnownList, knownList, knownLists } from './known-rows.ts';

const BEYOND_INT32 = [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, -1];
/** More than a pool of the usual size has connections. */
const ENDED_EARLY = 12;
/** Collections whose ids make a path, from the outside in. */
const LEVELS = ['workspaces', 'hosts', 'services'] as const;
/** Collections that a store may leave out. */
const CHILDREN = {
    services: 'a service only below its own parents',
    notes: 'a note only below its own parents',
    sessions: 'a session only below its own parents',
    vulns: 'a vulnerability only below its own parents',
    hostVulns: 'a vulnerability of a host only below it',
    workspaceServices: 'a service of a workspace only below it',
    workspaceNotes: 'a note of a workspace only below it',
    workspaceSessions: 'a session of a workspace only below it',
    workspaceVulns: 'a vulnerability of a workspace only below it',
};

type Child = keyof typeof CHILDREN;

const rowLaws: Laws<AnyInventoryFixture> = {
    async 'lists rows in arrays'(fixture) {
        for (const { name, collection, path, known } of await knownLists(fixture)) {
            let count = 0;
            for await (const batch of collection.list(path)) {
                assert.ok(Array.isArray(batch), `a batch of ${name} is an array of rows`);
                count += batch.length;
            }
            assert.equal(count, known.length, `${name} below ${path}`);
        }
    },

    async 'shows the rows that there are, with the ids of their parents'(fixture) {
        for (const list of await knownLists(fixture)) {
            const listed = await listedRows(list);
            for (const [index, row] of list.known.entries()) {
                assertFields(listed[index], row);
            }
        }
    },

    async 'shows a row alone as in the list'(fixture) {
        for (const list of await knownLists(fixture)) {
            const listed = await listedRows(list);
            for (const row of [...listed.slice(0, 5), ...listed.slice(-5)]) {
                assert.deepEqual(await list.collection.get(list.path, row.id), row);
            }
        }
    },

    async 'never says that a row is not there to who leaves while it is looked up'(fixture) {
        for (const list of await knownLists(fixture)) {
            for (const row of (await listedRows(list)).slice(0, 3)) {
                const { signal } = new AbortController();
                assert.deepEqual(await list.collection.get(list.path, row.id, { signal }), row);
                assert.deepEqual(await lookedUpUntilLeft(list, row.id), row);
            }
        }
    },

    async 'gives fields the types in which they go out'(fixture) {
        for (const list of await knownLists(fixture)) {
            // A field that is missing or null goes out as the nothing of its type.
            const schema = list.schema.fork(Object.keys(list.schema.describe().keys), (field) => field.optional().empty(null));
            for (const row of await listedRows(list)) {
                const { error } = schema.validate(row, { convert: false, allowUnknown: true });
                assert.equal(error, undefined, `${list.name}, row ${row.id}: ${error?.message}`);
            }
        }
    },

    async 'shows null for a row that does not exist'(fixture) {
        const lists = await knownLists(fixture);
        for (const { name, collection, path } of lists) {
            assert.equal(await collection.get(path, unknownId(knownIds(lists, name))), null);
        }
    },

    async 'takes ids beyond 32 bits for unknown, not for an error'(fixture) {
        for (const { collection, path, known } of await knownLists(fixture)) {
            for (const id of BEYOND_INT32) {
                assert.equal(await collection.get(path, id), null);
                for (const level of path.keys()) {
                    assert.equal(await collection.get(path.with(level, id), known[0]?.id ?? 0), null);
                    assert.deepEqual(await rows(collection, path.with(level, id)), []);
                }
            }
        }
    },

    async 'shows a host only below its own workspace'(fixture) {
        await assertOnlyBelow(fixture, 'hosts');
    },
};

const longListLaws: Laws<AnyInventoryFixture> = {
    async 'lists rows in ascending id, each once'(fixture) {
        const { collection, path, known } = await knownList(fixture, 'hosts', MANY);
        const listed = ids(await rows(collection, path));

        // As texts: Node lays out the difference of long lists at a price that grows with its square.
        assert.ok(listed.join() === ids(known).join(), 'ids ascend, none is missing and none is there twice');
    },

    async 'gives a long list in batches'(fixture) {
        const { collection, path, known } = await knownList(fixture, 'hosts', MANY);
        const read = await batches(collection, path);

        assert.ok(read.length > 1, `${known.length} hosts came in ${read.length} batch`);
        assert.equal(read.flat().length, known.length);
    },

    async 'ends the reading when its signal aborts'(fixture) {
        const read = await readUntilAborted(await knownList(fixture, 'hosts', MANY), new AbortController());

        assert.equal(read.length, 1);
    },

    async 'reads nothing when the signal was aborted before'(fixture) {
        const controller = new AbortController();
        controller.abort();
        const read = await readUntilAborted(await knownList(fixture, 'hosts', MANY), controller);

        assert.equal(read.flat().length, 0);
    },
};

const freeingLaws: Laws<AnyInventoryFixture> = {
    async 'frees what a reading held when it ends early'(fixture) {
        const list = await knownList(fixture, 'hosts', MANY);
        for (let reading = 0; reading < ENDED_EARLY; reading += 1) {
            for await (const _batch of list.collection.list(list.path)) {
                break;
            }
            await readUntilAborted(list, new AbortController());
        }

        assert.equal(await fixture.openReads(), 0);
        assert.equal((await rows(list.collection, list.path)).length, list.known.length);
    },

    async 'frees what a look-up held when its signal aborts'(fixture) {
        const list = await knownList(fixture, 'hosts', MANY);
        const { id } = present(list.known[0], 'a row');
        await inParallel(ENDED_EARLY, () => lookedUpUntilLeft(list, id));

        assert.equal(await fixture.openReads(), 0);
        assert.equal((await list.collection.get(list.path, id))?.id, id);
    },
};

/** Laws of any `InventoryStore`. */
export const readingGroups: InventoryLaws = [
    { needs: ['rows'], laws: rowLaws },
    { needs: ['rows', 'many-hosts'], laws: longListLaws },
    { needs: ['rows', 'many-hosts', 'reads-open'], laws: freeingLaws },
    ...Object.entries(CHILDREN).flatMap(([child, place]) => childGroups(child as Child, place)),
];

/** What a store does that has such a collection, and what one does that has none. */
function childGroups(child: Child, place: string): InventoryLaws {
    const shown: Laws<InventoryFixture> = {
        [`shows ${place}`]: (fixture) => assertOnlyBelow(fixture, child),
    };
    const absent: Laws<InventoryFixture> = {
        [`leaves out ${child}`]: async ({ store }) => assert.equal(store[child], undefined),
    };
    return [
        { needs: ['rows', child], laws: shown },
        { lacks: child, laws: absent },
    ];
}

/** The rows as the store lists them, as many as there are. */
async function listedRows({ name, collection, path, known }: KnownList): Promise<Awaited<ReturnType<typeof rows>>> {
    const listed = await rows(collection, path);
    assert.equal(listed.length, known.length, `${name} below ${path}`);
    return listed;
}

function knownIds(lists: readonly KnownList[], name: KnownList['name']): readonly number[] {
    return lists.filter((list) => list.name === name).flatMap(({ known }) => ids(known));
}

function unknownId(ids: readonly number[]): number {
    return Math.max(0, ...ids) + 1000;
}

/** The row as it is shown to somebody who leaves at once. An aborted look-up may reject: then the row as it is shown to others. */
async function lookedUpUntilLeft({ collection, path }: KnownList, id: number): Promise<object | null> {
    const leaving = new AbortController();
    const looking = collection.get(path, id, { signal: leaving.signal });
    leaving.abort();
    return await looking.catch((error: Error) => {
        assert.equal(error.name, 'AbortError');
        return collection.get(path, id);
    });
}

/** Takes a row and looks for it below its parents, and below others in the place of each of them. */
async function assertOnlyBelow(fixture: AnyInventoryFixture, name: KnownList['name']): Promise<void> {
    const lists = await knownLists(fixture);
    const { collection, path, known } = await knownList(fixture, name);
    const id = present(known[0], 'a row').id;
    assert.equal((await collection.get(path, id))?.id, id);

    for (const [level, parent] of path.entries()) {
        const parents = knownIds(lists, present(LEVELS[level]));
        for (const other of [unknownId(parents), ...parents.filter((one) => one !== parent).slice(0, 1)]) {
            const elsewhere = path.with(level, other);
            assert.equal(await collection.get(elsewhere, id), null);
            assert.ok(!(await rows(collection, elsewhere)).some((row) => row.id === id), `${name} below ${elsewhere}`);
        }
    }
}

/** The batches until the reading, aborted at its first one, has ended. An aborted reading may end or reject; it must do either. */
async function readUntilAborted({ collection, path }: KnownList, controller: AbortController): Promise<readonly (readonly object[])[]> {
    const read: (readonly object[])[] = [];
    try {
        for await (const batch of collection.list(path, { signal: controller.signal })) {
            read.push(batch);
            controller.abort();
        }
    } catch (error) {
        assert.equal((error as Error).name, 'AbortError');
    }

    return read;
}
