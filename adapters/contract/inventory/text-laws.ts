import assert from 'node:assert/strict';
import type Joi from 'joi';
import { HOST_FALLBACKS } from '../../../lib/inventory/host.ts';
import type { Collection } from '../../../lib/inventory/store.ts';
import { timestampFormat } from '../../../lib/timestamp.ts';
import { present, until } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { type AnyInventoryFixture, each, fullHost, https, type InventoryFixture, type InventoryLaws, MANY, rows } from './fixture.ts';
import { type KnownList, knownLists } from './known-rows.ts';

type Row = { readonly id: number };
type Texts = Required<Pick<Collection<Row>, 'listText'>>;

/** What JSON writes in other ways than it stands there, and what clients would take for the end of something. */
const HOSTILE = ['"quoted" \\ back/slash', `\u0001\u0008\t\n\f\r\u001f\u007f`, '\u2028\u2029\ufeff', '💾 köln 主机', `');--`, '</script>'];

const textLaws: Laws<AnyInventoryFixture> = {
    async 'writes the rows of a list as text'(fixture) {
        for (const list of await textLists(fixture, MANY)) {
            await assertWritten(list);
        }
    },

    async 'writes nothing below parents that do not exist'(fixture) {
        for (const list of await textLists(fixture)) {
            for (const id of [2 ** 40, 2 ** 31 - 1, -1]) {
                assert.equal(await written({ ...list, path: list.path.with(0, id) }), '');
            }
        }
    },

    async 'ends the writing when its signal aborts'(fixture) {
        const { collection, path } = await longestList(fixture);
        const controller = new AbortController();
        let batches = 0;
        try {
            for await (const _batch of collection.listText(path, { signal: controller.signal })) {
                batches += 1;
                controller.abort();
            }
        } catch (error) {
            assert.equal((error as Error).name, 'AbortError');
        }
        assert.equal(batches, 1);
    },
};

const freeingLaws: Laws<AnyInventoryFixture> = {
    async 'frees what the writing held when it ends early'(fixture) {
        const { collection, path } = await longestList(fixture);
        for await (const _batch of collection.listText(path)) {
            break;
        }
        // What was asked for ahead may begin a moment later, and ends by itself: one look without any shows nothing.
        let looks: readonly number[] = [];
        const isFree = async (): Promise<boolean> => {
            looks = [await fixture.openReads(), await fixture.openReads(), await fixture.openReads()];
            return looks.every((open) => open === 0);
        };
        await until(isFree, 2_000).catch(() => {});
        assert.deepEqual(looks, [0, 0, 0]);
    },
};

const importLaws: Laws<InventoryFixture> = {
    async 'writes what an import has brought and changed'(fixture) {
        const { store } = fixture;
        const hosts = HOSTILE.map((text, index) => ({
            ...fullHost,
            address: `192.0.2.${index}`,
            name: text,
            info: text,
            services: [{ ...https, name: text, info: text }],
        }));
        await store.importHosts('default', each([...hosts, { address: '198.51.100.1' }]));
        await store.importHosts('default', each(hosts.map((host) => ({ ...host, name: '', comments: null, os_lang: `${host.info}!` }))));
        for (const list of await textLists(fixture)) {
            await assertWritten(list);
        }
    },
};

/** Laws of an inventory that writes its rows as text by itself. */
export const textGroups: InventoryLaws = [
    { needs: ['texts', 'rows', 'many-hosts'], laws: textLaws },
    { needs: ['texts', 'rows', 'many-hosts', 'reads-open'], laws: freeingLaws },
    { needs: ['texts', 'imports'], laws: importLaws },
];

type TextList = Omit<KnownList, 'collection'> & { readonly collection: Collection<Row> & Texts };

async function textLists(fixture: AnyInventoryFixture, count?: number): Promise<readonly TextList[]> {
    const lists = await knownLists(fixture, count);
    return lists.filter((list): list is TextList => list.collection.listText !== undefined && list.path.length > 0);
}

async function longestList(fixture: AnyInventoryFixture): Promise<TextList> {
    const lists = await textLists(fixture, MANY);
    return present(lists.toSorted((one, other) => other.known.length - one.known.length)[0], 'a list');
}

async function written({ schema, collection, path }: Pick<TextList, 'schema' | 'collection' | 'path'>): Promise<string> {
    const texts: string[] = [];
    for await (const batch of collection.listText(path)) {
        assert.ok(
            typeof batch === 'string' || batch instanceof Uint8Array || Array.isArray(batch),
            'a batch is a text or an array of rows',
        );
        texts.push(typeof batch === 'string' ? batch : batch instanceof Uint8Array ? utf8.decode(batch) : textOf(batch, schema));
    }
    return texts.join();
}

async function assertWritten(list: TextList): Promise<void> {
    const [text, expected] = [await written(list), textOf(await rows(list.collection, list.path), list.schema)];
    // Not by assert.equal: it lays out the difference of long texts at a price that grows with its square.
    assert.ok(text === expected, `the text of ${list.name} below ${list.path} ${difference(text, expected)}`);
}

function difference(text: string, expected: string): string {
    let at = 0;
    while (at < expected.length && text[at] === expected[at]) {
        at += 1;
    }
    const around = (whole: string): string => whole.slice(Math.max(0, at - 40), at + 40);
    return `has ${around(text)} instead of ${around(expected)}`;
}

const utc = timestampFormat();
/** It refuses what is none, and keeps a mark of the order of bytes as the character that it is in a text. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Rows as they go out. */
function textOf(listed: readonly object[], schema: Joi.ObjectSchema): string {
    const fields = Object.keys(schema.describe().keys);
    const shown = (row: Readonly<Record<string, unknown>>, field: string): unknown => {
        const value = field === 'name' && row[field] === '' && 'address' in row ? HOST_FALLBACKS.name(row) : row[field];
        return value instanceof Date ? utc(value) : value;
    };
    return listed.map((row) => JSON.stringify(Object.fromEntries(fields.map((field) => [field, shown({ ...row }, field)])))).join();
}
