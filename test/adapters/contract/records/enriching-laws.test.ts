import t from 'tap';
import { recordStoreContract } from '../../../../adapters/contract/index.ts';
import { boundedLaws, enrichingLaws, notEnrichingLaws } from '../../../../adapters/contract/records/enriching-laws.ts';
import { lawsOf, mapValues, proveLaws } from '../laws.ts';
import { adding, brokenRecords, type Mutation, recordsFixture } from './fixture.ts';

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation>> = {
    'refuses to enrich where it cannot': (store) => ({ enriches: false, add: (records) => store.add(records) }),
    'makes a host for an address and a service for a port': adding((record) => ({ ...record, port: 443 })),
    'leaves the inventory alone unless asked to enrich it': (store) => ({
        add: (records) => store.add(records, { enrich: { workspace: 'default' } }),
    }),
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
            const fresh = records.filter((_, index) => added[index]?.isNew);
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
    'makes no host outside of the boundary of a workspace': unlimited,
    'changes no host outside of the boundary of a workspace': unlimited,
    'says of which records the inventory took nothing': (store) => ({
        async add(records, options) {
            return (await store.add(records, options)).map(({ id, isNew }) => ({ id, isNew }));
        },
    }),
    'stores the record of a host outside of the boundary': (store) => ({
        async add(records, options) {
            const added = await store.add(
                records.filter(({ ip }) => ip.startsWith('10.')),
                options,
            );
            return records.map(() => added[0] ?? { id: 1, isNew: true });
        },
    }),
};

/** As one that asks for no boundary. */
function unlimited(...[store, { updateWorkspace }]: Parameters<Mutation>): ReturnType<Mutation> {
    return {
        async add(records, options) {
            await updateWorkspace?.('default', { limit_to_network: false });
            return await store.add(records, options);
        },
    };
}

proveLaws(
    t,
    recordStoreContract,
    Object.keys({ ...enrichingLaws, ...boundedLaws, ...notEnrichingLaws }),
    mapValues(MUTANTS, brokenRecords),
);

t.test('catches a store that says it enriches and enriches nothing', async (t) => {
    const laws = lawsOf(
        recordStoreContract,
        brokenRecords((store) => ({ add: (records) => store.add(records) })),
    );
    const kept = new Set(['leaves the inventory alone unless asked to enrich it']);
    for (const name of Object.keys(enrichingLaws).filter((name) => !kept.has(name))) {
        await t.rejects(laws.get(name)?.() ?? Promise.resolve(), { code: 'ERR_ASSERTION' }, name);
    }
});

t.test('fails the laws of enriching without an inventory to look into', async (t) => {
    const { inventory: _inventory, ...fixture } = recordsFixture();
    const laws = lawsOf(recordStoreContract, () => fixture);
    for (const name of Object.keys(enrichingLaws)) {
        await t.rejects(laws.get(name)?.() ?? Promise.resolve(), { message: /the fixture must supply inventory/ }, name);
    }
});
