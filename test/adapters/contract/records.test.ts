import t from 'tap';
import { recordStoreContract } from '../../../adapters/contract/records.ts';
import type { HttpsRecord } from '../../../lib/records/record.ts';
import type { RecordQuery, RecordStore, StoredRecord } from '../../../lib/records/store.ts';
import { lawsOf } from './laws.ts';
import { recordsFixture } from './records-fixture.ts';

type Break = (store: RecordStore) => Partial<RecordStore>;

/** The store with other records in its place. */
const adding =
    (change: (record: HttpsRecord, place: number) => HttpsRecord): Break =>
    (store) => ({ add: (records, options) => store.add(records.map(change), options) });

/** The store with another way to ask it. */
const asking =
    (change: (query: RecordQuery) => RecordQuery): Break =>
    (store) => ({ list: (query) => store.list(change(query)) });

/** The store as it shows another record. */
const showing =
    (change: (stored: StoredRecord) => StoredRecord): Break =>
    (store) => ({
        async get(id) {
            const stored = await store.get(id);
            return stored === null ? null : change(stored);
        },
        list: async (query) => (await store.list(query)).map(change),
    });

/** One way to break each law; a law that its mutant passes is no law. */
const mutants: Record<string, Break> = {
    'gives a record back as it went in': showing((stored) => ({
        ...stored,
        record: { ...stored.record, data: Buffer.from(stored.record.data, 'base64').toString('base64') },
    })),
    'says when a record was imported': showing((stored) => ({
        ...stored,
        importedAt: new Date(Math.floor(stored.importedAt.getTime() / 1000) * 1000),
    })),
    'lets the time of import never go back': showing((stored) => ({ ...stored, importedAt: new Date(2 * 10 ** 12 - stored.id) })),
    'adds the same record once, whatever the order of its keys': (store) => {
        let adds = 0;
        return { add: (records) => store.add(records.map((record) => ({ ...record, path: `/${Object.keys(record)[0]}${adds++}` }))) };
    },
    'takes the same record twice at once for one': adding((record, place) => ({ ...record, path: `/${place}` })),
    'answers in the order of what it was given': (store) => ({
        add: async (records) => (await store.add(records)).toSorted((a, b) => a.id - b.id),
    }),
    'stores a record of several batches at the same time once': (store) => {
        let batches = 0;
        return {
            add(records) {
                const vhost = String(batches++);
                return store.add(records.map((record) => ({ ...record, vhost })));
            },
        };
    },
    'stores none of the records when one of them cannot be stored': (store) => ({
        add: async (records) => (await Promise.all(records.map((record) => store.add([record])))).flat(),
    }),
    'takes no records for nothing to do': (store) => ({
        add: (records) => store.add(records.length === 0 ? [{ data: '', host: 'x', ip: '192.0.2.7', port: 443 }] : records),
    }),
    'takes an id of no record for unknown, not for an error': (store) => ({
        async get(id) {
            if (!Number.isInteger(id)) {
                throw Object.assign(new Error('invalid input syntax for type bigint'), { code: '22P02' });
            }
            return store.get(id);
        },
    }),
    'lists in ascending id, a page at a time': asking((query) => ({ ...query, after: query.after && query.after + 1 })),
    'finds the records of an address, however it is written': (store) => ({
        async list({ ip, ...query }) {
            return (await store.list(query)).filter(({ record }) => ip === undefined || record.ip === ip);
        },
    }),
    'finds the records of a host, whatever its case': (store) => ({
        async list({ host, ...query }) {
            return (await store.list(query)).filter(({ record }) => host === undefined || record.host === host);
        },
    }),
    'finds the records of a time of import': asking(({ importedBefore, ...query }) => ({
        ...query,
        importedBefore: importedBefore && new Date(importedBefore.getTime() + 1),
    })),
    'finds what keeps every condition': asking(({ host: _host, ...query }) => query),
    'refuses to enrich where it cannot': (store) => ({ enriches: false, add: (records) => store.add(records) }),
    'makes a host for an address and a service for a port': adding((record) => ({ ...record, port: 443 })),
    'leaves the inventory alone unless told': (store) => ({ add: (records) => store.add(records, { enrich: { workspace: 'default' } }) }),
    'enriches a workspace that it makes': (store) => ({
        add: (records) => store.add(records, { enrich: { workspace: 'default' } }),
    }),
    'keeps what is known of a host and a service': (store) => ({
        add: (records, options) => store.add([...records, ...records.map((record) => ({ ...record, port: 8443 }))], options),
    }),
    'changes nothing with records that come again': (store) => {
        let adds = 0;
        return {
            add: (records, options) =>
                store.add(
                    records.map((record) => ({ ...record, vhost: String(adds++) })),
                    options,
                ),
        };
    },
    'enriches with records that were there before': (store) => ({
        async add(records, options) {
            const added = await store.add(records);
            const fresh = records.filter((_, place) => added[place]?.isNew);
            return options === undefined || fresh.length === 0 ? added : store.add(fresh, options);
        },
    }),
    'makes a host and a service of several batches at the same time once': (store) => {
        let batches = 0;
        return {
            add(records, options) {
                const port = 8000 + batches++;
                return store.add(
                    records.map((record) => ({ ...record, port })),
                    options,
                );
            },
        };
    },
};

function broken(mutate: Break) {
    return () => {
        const fixture = recordsFixture();
        return { ...fixture, store: { ...fixture.store, ...mutate(fixture.store) } };
    };
}

t.test('catches a store that breaks a law', async (t) => {
    const names = [
        ...lawsOf(
            recordStoreContract,
            broken(() => ({})),
        ).keys(),
    ];
    t.same(Object.keys(mutants).sort(), names.sort());
    for (const [name, mutate] of Object.entries(mutants)) {
        const law = lawsOf(recordStoreContract, broken(mutate)).get(name);
        await t.rejects(law?.() ?? Promise.resolve(), { code: /ERR_ASSERTION|22P02/ }, name);
    }
});
