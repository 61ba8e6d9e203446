import t from 'tap';
import { webhookStoresContract } from '../../../../adapters/contract/index.ts';
import { notKeepingCountsLaws } from '../../../../adapters/contract/webhooks/count-laws.ts';
import { notHoldingLaws } from '../../../../adapters/contract/webhooks/holding-laws.ts';
import { notIdempotentLaws } from '../../../../adapters/contract/webhooks/idempotency-laws.ts';
import { noNoticesLaws } from '../../../../adapters/contract/webhooks/notice-laws.ts';
import { notOfExportersLaws } from '../../../../adapters/contract/webhooks/of-exporters-laws.ts';
import { noOrderLaws } from '../../../../adapters/contract/webhooks/ordering-laws.ts';
import { notRatedLaws } from '../../../../adapters/contract/webhooks/rate-laws.ts';
import { type WebhookAbility, type WebhookStores, webhookAbilities } from '../../../../adapters/contract/webhooks/stores.ts';
import { namingNoSilentLaws } from '../../../../adapters/contract/webhooks/sweep-laws.ts';
import { lawOf, lawsOf, mapValues, proveLaws } from '../laws.ts';
import { LOSABLE, lesserStores, REFUSABLE, refusing, SAID, unsaid } from './lesser-stores.ts';
import { memoryStores } from './mutants.ts';

const whole = new Set(lawsOf(webhookStoresContract, memoryStores).keys());

for (const ability of LOSABLE) {
    t.test(`stores without ${ability} are asked nothing that takes it`, async (t) => {
        const laws = lawsOf(webhookStoresContract, () => lesserStores(ability));
        t.notOk(webhookAbilities[ability].has(lesserStores(ability)));
        t.ok(
            [...whole].some((name) => !laws.has(name)),
            'it has laws of its own',
        );
        for (const [name, law] of laws) {
            await t.resolves(law(), name);
        }

        const opposite = [...laws.keys()].filter((name) => !whole.has(name));
        t.equal(opposite.length > 0, SAID.includes(ability) || ability === 'notices', 'what it does not say is held against it');
    });
}

/** The law that is held against stores that do not say what they do, each for the ability that it is the opposite of. */
const OPPOSITE = {
    ofExporters: notOfExportersLaws,
    counts: notKeepingCountsLaws,
    idempotency: notIdempotentLaws,
    holding: notHoldingLaws,
    rate: notRatedLaws,
    order: noOrderLaws,
    silentSessions: namingNoSilentLaws,
};

t.same(Object.keys(OPPOSITE).sort(), SAID.toSorted());

for (const [ability, laws] of Object.entries(OPPOSITE) as [WebhookAbility, object][]) {
    // They do all the same what they do not say.
    proveLaws(
        t,
        webhookStoresContract,
        Object.keys(laws),
        mapValues(laws as Record<string, unknown>, () => () => unsaid(memoryStores(), ability)),
    );
}

for (const ability of REFUSABLE) {
    t.test(`stores that refuse what takes ${ability} keep the laws of those without it`, async (t) => {
        for (const name of Object.keys(OPPOSITE[ability])) {
            await t.resolves(lawOf(webhookStoresContract, () => refusing(lesserStores(ability), ability), name)(), name);
        }
    });
}

for (const ability of ['idempotency', 'order'] as const) {
    t.test(`stores without ${ability} that refuse only a key that was there before heed keys`, async (t) => {
        for (const name of Object.keys(OPPOSITE[ability])) {
            await t.rejects(lawOf(webhookStoresContract, () => refusing(lesserStores(ability), ability, 1), name)(), { code: 'CONFLICT' });
        }
    });
}

/** A store without notices that forgets some. */
function halfOfNotices(): WebhookStores {
    const stores = lesserStores('notices');
    return { ...stores, exporters: { ...stores.exporters, forgetNotices: async () => [] } };
}

proveLaws(
    t,
    webhookStoresContract,
    Object.keys(noNoticesLaws),
    mapValues(noNoticesLaws, () => halfOfNotices),
);
