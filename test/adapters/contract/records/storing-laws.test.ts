import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { recordStoreContract } from '../../../../adapters/contract/index.ts';
import { countingLaws, storingLaws } from '../../../../adapters/contract/records/storing-laws.ts';
import type { RecordQuery, StoredRecord } from '../../../../lib/records/store.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { adding, brokenRecords, type Mutation } from './fixture.ts';

/** The store with another way to ask it. */
const asking =
    (change: (query: RecordQuery) => RecordQuery): Mutation =>
    (store) => ({ list: (query) => store.list(change(query)) });

/** The store as it shows another record. */
const showing =
    (change: (stored: StoredRecord) => StoredRecord): Mutation =>
    (store) => ({
        async get(id) {
            const stored = await store.get(id);
            return stored === null ? null : change(stored);
        },
        list: async (query) => (await store.list(query)).map(change),
    });

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation>> = {
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
    'takes the same record twice at once for one': adding((record, index) => ({ ...record, path: `/${index}` })),
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
    'counts the records that keep every condition': ({ count }) => ({ count: ({ host: _host, ...filter }) => present(count)(filter) }),
};

proveLaws(t, recordStoreContract, Object.keys({ ...storingLaws, ...countingLaws }), mapValues(MUTANTS, brokenRecords));
