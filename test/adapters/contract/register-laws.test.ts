import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/index.ts';
import { type ContractFixture, registerLaws, registerSuite, type Suite } from '../../../adapters/contract/register-laws.ts';
import { memoryWebhooks } from '../../../adapters/memory/index.ts';
import { lawsOf } from './laws.ts';

interface Bird extends ContractFixture {
    readonly flies: boolean;
    readonly sky?: string;
}

const suite: Suite<Bird, Required<Bird>, 'flying'> = {
    abilities: { flying: { has: ({ flies }) => flies, shows: ({ sky }) => sky !== undefined, supply: 'a sky' } },
    groups: [
        { laws: { async breathes() {} } },
        { needs: ['flying'], laws: { async flies() {} } },
        { lacks: 'flying', laws: { async walks() {} } },
    ],
};

function lawsFor(bird: Bird): ReturnType<typeof lawsOf> {
    return lawsOf<Bird>(
        (test, create) => registerSuite(test, create, suite),
        () => bird,
    );
}

t.test('registers the laws of an ability that the store has', async (t) => {
    const laws = lawsFor({ flies: true, sky: 'blue' });
    t.same([...laws.keys()], ['breathes', 'flies']);
    await t.resolves(laws.get('flies')?.() ?? Promise.reject());
});

t.test('registers the opposite laws of an ability that the store does not have', async (t) => {
    t.same([...lawsFor({ flies: false, sky: 'blue' }).keys()], ['breathes', 'walks']);
});

t.test('fails the laws of an ability that the fixture cannot show', async (t) => {
    const laws = lawsFor({ flies: true });
    t.same([...laws.keys()], ['breathes', 'flies']);
    const message = 'Cannot put the law to the test: the fixture must supply a sky (flying)';
    await t.rejects(laws.get('flies')?.() ?? Promise.resolve(), { code: 'ERR_ASSERTION', message });
});

t.test('fails the laws of transactions without a way to begin one', async (t) => {
    const { deliveries, ...others } = memoryWebhooks();
    const laws = lawsOf(webhookStoresContract, () => ({ ...others, deliveries: { ...deliveries, transactions: true }, setTime() {} }));
    t.notOk(laws.has('refuses a transaction of the application'));
    for (const name of ['joins a transaction of the application', 'leaves the transaction of the application usable after a refusal']) {
        await t.rejects(laws.get(name)?.() ?? Promise.resolve(), { code: 'ERR_ASSERTION', message: /must supply begin\(\)/ });
    }
});

t.test('refuses a fixture that is a promise', async (t) => {
    const create = (async () => ({ flies: true })) as unknown as () => Bird;
    t.throws(() => registerSuite(() => {}, create, suite), TypeError);
});

t.test('starts each fixture, and stops it also after a law that failed', async (t) => {
    const calls: string[] = [];
    const fixture = { start: async () => void calls.push('start'), stop: async () => void calls.push('stop') };
    const laws = lawsOf<ContractFixture>(
        (test, create) =>
            registerLaws(test, create, { holds: async () => void calls.push('law'), fails: () => Promise.reject(new Error('down')) }),
        () => fixture,
    );
    t.same(calls, []);
    await laws.get('holds')?.();
    await t.rejects(laws.get('fails')?.() ?? Promise.resolve(), { message: 'down' });
    t.same(calls, ['start', 'law', 'stop', 'start', 'stop']);
});
