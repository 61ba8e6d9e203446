import Joi from 'joi';
import t from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { SettingsStore } from '../../lib/webhooks/deployment-settings.ts';
import { type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

t.test('what older processes hold is finished, and none of them claims after the change', async (t) => {
    const deployment = simulatedDeployment(t);
    const outdated: number[] = [];
    const older = await deployment.start('older', { onOutdated: () => outdated.push(deployment.now()) });
    await deployment.exporter(older);
    deployment.receive = ({ by }) => ({ result: 204, after: by === 'older' ? 8_000 : 50 });
    await deployment.publish(older, 80);
    await deployment.advance(1_000);
    t.strictSame(await deployment.states(), { pending: 30, sending: 50 });

    const newer = await deployment.start('newer', { window: 60 });
    const changedAt = deployment.now();
    await deployment.publish(older, 10);
    await deployment.advance(6_000);
    t.strictSame(await deployment.states(), { delivered: 40, sending: 50 }, 'in flight is what was claimed before');
    await deployment.advance(30_000);
    t.strictSame(await deployment.states(), { delivered: 90 });
    const late = deployment.posts.filter(({ at, by }) => by === 'older' && at > changedAt);
    t.strictSame(late, []);
    t.equal(deployment.posts.length, 90, 'and nothing is sent twice');

    t.equal(outdated.length, 1);
    t.strictSame(conflicts(older), [
        'Cannot go on sending here: another process has changed the settings (window is 50 here and 60 in the store)',
    ]);
    t.strictSame(conflicts(newer), []);
    await deployment.finish(older.close());
    await deployment.finish(newer.close());
});

t.test(
    'settings are not asked for as long as what is handed out or a heartbeat tells that they hold, and a change is told all the same',
    async (t) => {
        const deployment = simulatedDeployment(t);
        const settings = counted(deployment.stores.settings);
        const older = await deployment.start('older', { settings });
        await deployment.exporter(older);
        await deployment.advance(2_500);

        settings.asked = 0;
        for (let events = 0; events < 20; events += 1) {
            await deployment.publish(older, 1);
            await deployment.advance(1_000);
        }
        t.equal(deployment.posts.length, 20);
        await deployment.advance(20_000);
        t.equal(settings.asked, 0);

        const newer = await deployment.start('newer', { window: 60 });
        await deployment.advance(4_000);
        t.equal(conflicts(older).length, 1);
        await deployment.finish(older.close());
        await deployment.finish(newer.close());
    },
);

t.test('a change of what owners may have keeps nobody from sending', async (t) => {
    const deployment = simulatedDeployment(t);
    const older = await deployment.start('older');
    await deployment.exporter(older);
    await deployment.advance(5_000);
    const newer = await deployment.start('newer', { maxExportersPerOwner: 3, queue: memoryQueue() });
    await deployment.publish(newer, 1);
    await deployment.publish(older, 80);
    await deployment.advance(500);
    t.strictSame(await deployment.states(), { delivered: 81 });
    t.same(new Set(deployment.posts.map(({ by }) => by)), new Set(['older', 'newer']));
    await deployment.finish(newer.close());
    t.strictSame([...conflicts(older), ...conflicts(newer)], []);
    await deployment.finish(older.close());
});

t.test('settings are asked for where a store tells nothing with its heartbeats', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { keepAlive } = deliveries;
    Object.assign(deliveries, {
        keepAlive: (...[session, duration, begun]: Parameters<typeof keepAlive>) => keepAlive(session, duration, begun),
    });
    const settings = counted(deployment.stores.settings);
    const older = await deployment.start('older', { settings });
    await deployment.advance(2_500);

    settings.asked = 0;
    await deployment.advance(20_000);
    t.ok(settings.asked >= 9, `asked for ${settings.asked} times in 20 s without events`);

    const newer = await deployment.start('newer', { window: 60 });
    await deployment.advance(4_000);
    t.equal(conflicts(older).length, 1);
    await deployment.finish(older.close());
    await deployment.finish(newer.close());
});

t.test('a host that starts again is the newer one', async (t) => {
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    const second = await deployment.start('second', { window: 60 });
    await deployment.advance(2_500);
    await deployment.finish(first.close());
    await first.start();
    await first.work(['default']);
    await deployment.advance(2_500);
    t.match(conflicts(second), [/window is 60 here and 50 in the store/]);
    await deployment.exporter(first);
    await deployment.publish(first, 5);
    await deployment.advance(1_000);
    t.strictSame(
        deployment.posts.map(({ by }) => by),
        Array(5).fill('first'),
    );
});

t.test('a setting that came or went is named, and for a worker what it does not know itself', async (t) => {
    const deployment = simulatedDeployment(t);
    const kinds = [{ name: 'scan_finished', schema: Joi.object() }];
    const older = await deployment.start('older');
    const worker = await deployment.start('worker', { role: 'worker' });
    const newer = await deployment.start('newer', { kinds });
    const later = await deployment.start('later', { role: 'worker' });
    await deployment.advance(2_500);
    const came =
        'Cannot go on sending here: another process has changed the settings (kinds is not set here and ["scan_finished"] in the store)';
    t.strictSame(conflicts(older), [came]);
    t.strictSame(conflicts(worker), [came]);

    await deployment.start('newest');
    await deployment.advance(2_500);
    const went =
        'Cannot go on sending here: another process has changed the settings (kinds is ["scan_finished"] here and not set in the store)';
    t.strictSame(conflicts(newer), [went]);
    t.strictSame(conflicts(later), [went]);
});

t.test('settings that were changed and changed back name none', async (t) => {
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    await deployment.start('second', { window: 60 });
    await deployment.start('third');
    await deployment.advance(2_500);
    t.strictSame(conflicts(first), ['Cannot go on sending here: another process has changed the settings, and changed them back']);
});

t.test('a worker keeps nothing in the store, and needs what its host has kept', async (t) => {
    const deployment = simulatedDeployment(t);
    const { settings } = deployment.stores;
    await t.rejects(deployment.start('early', { role: 'worker' }), { code: 'MISCONFIGURED', message: /start the host first$/ });
    t.match(await settings.read(), { generation: 0, settings: null });

    await deployment.start('host', { vendor: 'Acme' });
    await t.rejects(deployment.start('other', { role: 'worker', vendor: 'Beta' }), { code: 'MISCONFIGURED', field: 'vendor' });
    await deployment.start('worker', { role: 'worker', vendor: 'Acme' });
    t.match(await settings.read(), { generation: 1, settings: { vendor: 'Acme' } });
});

function counted(settings: SettingsStore): SettingsStore & { asked: number } {
    return {
        ...settings,
        asked: 0,
        read() {
            this.asked += 1;
            return settings.read();
        },
    };
}

function conflicts({ errors }: SimulatedProcess): string[] {
    return errors.filter((error) => 'code' in error && error.code === 'CONFLICT').map(({ message }) => message);
}
