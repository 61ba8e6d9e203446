import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { textGroups } from '../../../../adapters/contract/inventory/text-laws.ts';
import { HOST_FIELDS, type Host } from '../../../../lib/inventory/host.ts';
import type { Collection, InventoryStore } from '../../../../lib/inventory/store.ts';
import { timestampFormat } from '../../../../lib/timestamp.ts';
import { lawOf, mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

type Reading = Mutation<Required<InventoryStore>>;
type ListText = Required<Collection<Host>>['listText'];

const utc = timestampFormat();

/** What is honest: the text of each batch of the list. */
function textOf(batch: readonly Host[], time: (at: Date) => string = utc): string {
    const inOrder = Object.fromEntries(Object.keys(HOST_FIELDS).map((field) => [field, null]));
    const shown = batch.map((host) => ({
        ...inOrder,
        ...host,
        name: host.name || host.address,
        created_at: time(host.created_at),
        updated_at: time(host.updated_at),
    }));
    return JSON.stringify(shown).slice(1, -1);
}

const writing =
    (change: (hosts: Collection<Host>) => ListText): Reading =>
    ({ hosts }) => ({ hosts: { ...hosts, listText: change(hosts) } });

const honest = writing(
    (hosts) =>
        async function* (path, options) {
            for await (const batch of hosts.list(path, options)) {
                yield textOf(batch);
            }
        },
);

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Reading>> = {
    'writes the rows of a list as text': writing(
        (hosts) =>
            async function* (path) {
                for await (const batch of hosts.list(path)) {
                    yield textOf(batch, (at) => at.toISOString());
                }
            },
    ),
    'writes nothing below parents that do not exist': writing(
        (hosts) =>
            async function* () {
                for await (const batch of hosts.list([1])) {
                    yield textOf(batch);
                }
            },
    ),
    'ends the writing when its signal aborts': writing(
        (hosts) =>
            async function* (path) {
                for await (const batch of hosts.list(path)) {
                    yield textOf(batch);
                }
            },
    ),
    'writes what an import has brought and changed': writing((hosts) => {
        let kept: readonly string[] | undefined;
        return async function* (path) {
            const texts: string[] = [];
            for await (const batch of hosts.list(path)) {
                texts.push(textOf(batch.map((host) => ({ ...host, info: host.info?.replace('\u007f', '\\u007f') ?? null }))));
            }
            kept ??= texts;
            yield* kept;
        };
    }),
    'frees what the writing held when it ends early': (store) => {
        let open = 0;
        return {
            openReads: () => open,
            hosts: {
                ...store.hosts,
                async *listText(path) {
                    open += 1;
                    for await (const batch of store.hosts.list(path)) {
                        yield textOf(batch);
                    }
                    open -= 1;
                },
            },
        };
    },
};

const lawNames = textGroups.flatMap(({ laws }) => Object.keys(laws));

t.test('each law has a mutant that it catches', async (t) => {
    proveLaws(
        t,
        inventoryContract,
        lawNames,
        mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
    );
});

t.test('hold on a store that writes what it lists, as text or as bytes', async (t) => {
    const bytes = writing(
        (hosts) =>
            async function* (path, options) {
                for await (const batch of hosts.list(path, options)) {
                    yield Buffer.from(textOf(batch));
                }
            },
    );
    for (const name of lawNames) {
        await t.resolves(lawOf(inventoryContract, () => inventoryFixture(honest), name)(), name);
        await t.resolves(lawOf(inventoryContract, () => inventoryFixture(bytes), name)(), `${name}, as bytes`);
    }
});
