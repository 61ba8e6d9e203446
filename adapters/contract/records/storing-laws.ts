import assert from 'node:assert/strict';
import type { HttpsRecord } from '../../../lib/records/record.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { all, FIRST, idsOf, manyRecords, type RecordStoreFixture, record, SECOND, THIRD } from './fixture.ts';

/** Each keeps the schema, and each is one that some store would change. */
const AWKWARD: readonly HttpsRecord[] = [
    record({ path: '/köln 🖥\0', vhost: 'half \ud83d pair', subject: { OU: '\udc00', CN: 'nul \0 "quoted" \\ \u2028' } }),
    record({ data: 'QQ==' }),
    // The same bytes, from another encoder.
    record({ data: 'QR==' }),
    record({ data: '' }),
    record({ data: 'Zm9v'.repeat(250_000) }),
    record({ vhost: '' }),
    record({ subject: {} }),
    record({ subject: { OU: '' } }),
    record({ subject: { CN: '' } }),
    record({ host: 'WWW.Example.com' }),
    record({ host: 'www.example.com.' }),
    record({ ip: '2001:db8::7' }),
    record({ ip: '2001:DB8:0:0::7' }),
    record({ ip: '::ffff:192.0.2.7' }),
    record({ port: 1 }),
    record({ port: 65_535 }),
];

/** What is stored, and how it is found again. */
export const storingLaws: Laws<RecordStoreFixture> = {
    async 'gives a record back as it went in'({ store }) {
        const added = await store.add(AWKWARD);
        for (const [index, { id, isNew }] of added.entries()) {
            assert.equal(isNew, true);
            assert.ok(Number.isSafeInteger(id) && id > 0);
            assert.deepEqual((await store.get(id))?.record, AWKWARD[index]);
        }

        const stored = (await all(store)).map(({ record }) => record);
        assert.deepEqual(stored, AWKWARD);
    },

    async 'says when a record was imported'({ store, setTime }) {
        setTime(FIRST);
        const [added] = await store.add([record()]);

        assert.deepEqual((await store.get(added?.id ?? 0))?.importedAt, FIRST);
    },

    async 'lets the time of import never go back'({ store, setTime }) {
        setTime(SECOND);
        await store.add([record()]);
        setTime(FIRST);
        await store.add([record(), record({ path: '/later' })]);

        const times = (await all(store)).map(({ importedAt }) => importedAt);
        assert.deepEqual(times, [SECOND, SECOND]);
    },

    async 'adds the same record once, whatever the order of its keys'({ store, setTime }) {
        const { data, host, ip, port } = record();
        const subject = { OU: 'unit', CN: 'name' };
        setTime(FIRST);
        const [first] = await store.add([{ data, host, ip, port, subject }]);
        setTime(SECOND);
        const [again] = await store.add([{ subject: { CN: subject.CN, OU: subject.OU }, port, ip, host, data }]);

        assert.deepEqual(again, { id: first?.id, isNew: false });
        assert.deepEqual(await all(store), [{ id: first?.id, importedAt: FIRST, record: record({ subject }) }]);
    },

    async 'takes the same record twice at once for one'({ store }) {
        const [first, other, again] = await store.add([record(), record({ port: 8443 }), record()]);

        assert.deepEqual([first?.isNew, other?.isNew], [true, true]);
        assert.deepEqual(again, { id: first?.id, isNew: false });
        assert.deepEqual(await idsOf(store), [first?.id, other?.id]);
    },

    async 'answers in the order of what it was given'({ store }) {
        const records = manyRecords(20);
        const before = await store.add(records.filter((_, index) => index % 3 === 0));
        const added = await store.add(records.toReversed());

        assert.equal(added.length, records.length);
        for (const [index, { id }] of added.toReversed().entries()) {
            assert.deepEqual((await store.get(id))?.record, records[index]);
        }
        assert.equal(added.filter(({ isNew }) => !isNew).length, before.length);
    },

    async 'stores a record of several batches at the same time once'({ store }) {
        const records = manyRecords(300);
        const orders = [records, records.toReversed(), records];
        const answers = await Promise.all(orders.map((order) => store.add(order)));

        assert.equal(answers.flat().filter(({ isNew }) => isNew).length, records.length);
        assert.equal((await all(store)).length, records.length);
    },

    async 'stores none of the records when one of them cannot be stored'({ store }) {
        await assert.rejects(store.add([record(), record({ ip: 'nowhere' })]));

        assert.deepEqual(await all(store), []);
    },

    async 'takes no records for nothing to do'({ store }) {
        assert.deepEqual(await store.add([]), []);
        assert.deepEqual(await all(store), []);
    },

    async 'takes an id of no record for unknown, not for an error'({ store }) {
        await store.add([record()]);
        for (const id of [0, -1, 1.5, 2 ** 31, 2 ** 53, 2 ** 70, Number.NaN]) {
            assert.equal(await store.get(id), null);
        }
    },

    async 'lists in ascending id, a page at a time'({ store }) {
        const records = manyRecords(25);
        await store.add(records.slice(0, 10));
        await store.add(records.slice(10));
        const paths: (string | undefined)[] = [];
        let after: number | undefined;
        for (let page = await all(store, { limit: 10 }); page.length > 0; page = await all(store, { limit: 10, after })) {
            assert.ok(page.length <= 10);
            assert.ok(page.every(({ id }, index) => id > (page[index - 1]?.id ?? after ?? 0)));
            paths.push(...page.map(({ record: { path } }) => path));
            after = page.at(-1)?.id;
        }

        const added = records.map(({ path }) => path);
        assert.deepEqual(paths, added);
    },

    async 'finds the records of an address, however it is written'({ store }) {
        const [v4, , v6, v6Again] = await store.add([
            record(),
            record({ ip: '192.0.2.8' }),
            record({ ip: '2001:DB8:0::7' }),
            record({ ip: '2001:db8::7', port: 8443 }),
        ]);

        assert.deepEqual(await idsOf(store, { ip: '192.0.2.7' }), [v4?.id]);
        assert.deepEqual(await idsOf(store, { ip: '2001:0db8::0007' }), [v6?.id, v6Again?.id]);
        assert.deepEqual(await idsOf(store, { ip: '::ffff:192.0.2.7' }), []);
    },

    async 'finds the records of a host, whatever its case'({ store }) {
        const [lower, mixed, , address] = await store.add([
            record(),
            record({ host: 'WWW.example.COM.' }),
            record({ host: 'example.com' }),
            record({ host: '2001:DB8::7' }),
        ]);

        assert.deepEqual(await idsOf(store, { host: 'Www.Example.Com' }), [lower?.id, mixed?.id]);
        assert.deepEqual(await idsOf(store, { host: '2001:db8:0::7' }), [address?.id]);
        assert.deepEqual(await idsOf(store, { host: 'ample.com' }), []);
    },

    async 'finds the records of a time of import'({ store, setTime }) {
        const ids: number[] = [];
        for (const [index, time] of [FIRST, SECOND, THIRD].entries()) {
            setTime(time);
            ids.push((await store.add([record({ path: `/${index}` })]))[0]?.id ?? 0);
        }

        assert.deepEqual(await idsOf(store, { importedFrom: SECOND }), ids.slice(1));
        assert.deepEqual(await idsOf(store, { importedBefore: SECOND }), ids.slice(0, 1));
        assert.deepEqual(await idsOf(store, { importedFrom: SECOND, importedBefore: THIRD }), ids.slice(1, 2));
    },

    async 'finds what keeps every condition'({ store, setTime }) {
        setTime(FIRST);
        await store.add([record(), record({ path: '/early' })]);
        setTime(SECOND);
        const [, late] = await store.add([record({ ip: '192.0.2.8' }), record({ path: '/late' }), record({ host: 'other.example' })]);
        const query = { ip: '192.0.2.7', host: 'www.example.com', importedFrom: SECOND };

        assert.deepEqual(await idsOf(store, query), [late?.id]);
        assert.deepEqual(await idsOf(store, { ...query, after: late?.id }), []);
    },
};

/** How many there are. */
export const countingLaws: Laws<RecordStoreFixture> = {
    async 'counts the records that keep every condition'({ store, setTime }) {
        setTime(FIRST);
        await store.add([record(), record({ path: '/early' })]);
        setTime(SECOND);
        await store.add([record({ ip: '2001:DB8::7' }), record({ host: 'other.example' })]);
        const filters = [
            {},
            { ip: '192.0.2.7' },
            { ip: '2001:db8:0::7' },
            { host: 'WWW.example.com' },
            { importedFrom: SECOND },
            { importedBefore: SECOND },
            { ip: '192.0.2.7', host: 'www.example.com', importedFrom: SECOND },
            { host: 'nowhere.example' },
        ];
        for (const filter of filters) {
            const count = present(store.count);
            assert.equal(await count(filter), (await all(store, filter)).length, JSON.stringify(filter));
        }
    },
};
