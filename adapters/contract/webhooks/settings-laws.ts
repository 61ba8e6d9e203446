import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { inParallel, only } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, BEGIN_WITHIN, SETTINGS, type WebhookBench } from './fixture.ts';

/** The settings of a deployment, and that nobody sends with older ones. */
export const settingsLaws: Laws<WebhookBench> = {
    async 'begins one deployment without settings, whoever asks first'({ settings }) {
        const found = await inParallel(5, () => settings.read());
        assert.match(found[0]?.id ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        assert.deepEqual(found, Array(5).fill({ id: found[0]?.id, generation: 0, settings: null }));
    },

    async 'keeps settings as they were declared'({ settings }) {
        const { id } = await settings.read();
        const declared = await settings.declare(SETTINGS);
        assert.deepEqual(declared, { id, generation: 1, settings: SETTINGS });
        assert.deepEqual(await settings.read(), declared);
    },

    async 'begins the deployment when settings are declared first'({ settings }) {
        const { id, generation } = await settings.declare(SETTINGS);
        assert.equal(generation, 1);
        assert.equal((await settings.read()).id, id);
    },

    async 'raises the generation when settings differ, and only then'({ settings }) {
        await settings.declare(SETTINGS);
        const { vendor, ...others } = SETTINGS;
        assert.equal((await settings.declare({ ...others, vendor })).generation, 1, 'in another order');
        const { prefix: _, ...fewer } = SETTINGS;
        const changed = await settings.declare(fewer);
        assert.deepEqual([changed.generation, changed.settings], [2, fewer]);
        assert.equal((await settings.declare(SETTINGS)).generation, 3);
    },

    async 'keeps what owners may have, of which no process that sends has to hear'({ settings }) {
        await settings.declare(SETTINGS);
        const limited = { ...SETTINGS, maxExportersPerOwner: 3, owners: { ann: { maxExporters: 5 } } };
        const { generation, settings: kept } = await settings.declare(limited);
        assert.deepEqual([generation, kept], [1, limited]);
        assert.equal((await settings.declare({ ...limited, vendor: 'Other' })).generation, 2);
        assert.deepEqual(await settings.declare(SETTINGS), { ...(await settings.read()), generation: 3, settings: SETTINGS });
    },

    async 'loses no change when several declare at once'({ settings }) {
        const changed = await inParallel(5, (window) => settings.declare({ ...SETTINGS, window: window + 1 }));
        assert.deepEqual(changed.map(({ generation }) => generation).sort(), [1, 2, 3, 4, 5]);
    },

    async 'names one database in all of its stores, or in none'({ exporters, deliveries, settings }) {
        assert.equal(deliveries.database, exporters.database);
        assert.equal(settings.database, exporters.database);
    },

    async 'claims nothing for a session of other settings'(bench) {
        await bench.settings.declare(SETTINGS);
        const session = { id: randomUUID(), process: 'worker', slots: {}, generation: 1 };
        await bench.deliveries.keepAlive(session, 60_000);
        const [first = '', second = ''] = await bench.queueMany(2);
        assert.equal((await bench.claim([first], at(0), session.id)).length, 1);

        await bench.settings.declare({ ...SETTINGS, vendor: 'Other' });
        assert.deepEqual(await bench.claim([second], at(0), session.id), []);
        await bench.assertDelivery(second, { state: 'pending', attempts: 0 });
        await bench.deliveries.keepAlive({ ...session, generation: 2 }, 60_000);
        assert.equal(only(await bench.claim(await bench.dispatchedIds(), at(0), session.id)).deliveryId, second);
    },

    async 'claims nothing for a session that is not known any more'(bench) {
        await bench.settings.declare(SETTINGS);
        const session = { id: randomUUID(), process: 'worker that stood still', slots: {}, generation: 1 };
        await bench.deliveries.keepAlive(session, 60_000);
        const ids = await bench.queueMany(2);
        await bench.deliveries.endSessions([session.id]);
        await bench.settings.declare({ ...SETTINGS, vendor: 'Other' });
        assert.deepEqual(await bench.claim(ids, at(0), session.id), []);
        for (const id of ids) {
            await bench.assertDelivery(id, { state: 'pending', attempts: 0 });
        }

        await bench.deliveries.keepAlive({ ...session, generation: 2 }, 60_000);
        assert.equal((await bench.claim(await bench.dispatchedIds(), at(0), session.id)).length, 2, 'known again');
    },

    async 'says under which settings it hands out'(bench) {
        await bench.addExporter();
        await bench.settings.declare(SETTINGS);
        const [first] = await bench.acceptAtOnce(1);
        await bench.publish();
        await bench.settings.declare({ ...SETTINGS, vendor: 'Other' });
        const [third] = await bench.dispatch({ beginWithin: BEGIN_WITHIN });
        assert.deepEqual(
            [only(first?.handedOut ?? []), third].map((one) => one?.reservation?.settings),
            [1, 2],
        );
    },

    async 'claims for sessions that say no generation'(bench) {
        await bench.settings.declare(SETTINGS);
        const session = { id: randomUUID(), process: 'worker of the version before', slots: {} };
        await bench.deliveries.keepAlive(session, 60_000);
        assert.equal((await bench.claim(await bench.queueMany(2), at(0), session.id)).length, 2);
    },
};
