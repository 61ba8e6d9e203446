import t, { type Test } from 'tap';
import { only, present } from '../../adapters/contract/assertions.ts';
import { forAll, sampleEvent } from '../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Tracing } from '../../lib/webhooks/observing/tracing.ts';
import { type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

/*
 * A change of an exporter holds once it is answered. A process that has read the settings before, and hears of it afterwards, does not send with them.
 */

const NEW_URL = 'http://127.0.0.1/new';

/** Tells of no span, but has traces kept and read. */
const TRACING: Tracing = {
    options: { sendTraceparent: false },
    publishing: (_, publish) => publish(`00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`),
    attempting: (_, attempt) => attempt((__, send) => send(null)),
};

const CHANGES: Readonly<Record<string, (process: SimulatedProcess, id: string, eventId: string) => Promise<unknown>>> = {
    'another URL': ({ exporters }, id) => exporters.update(id, { url: NEW_URL }, { wait: false }),
    'a stop': ({ exporters }, id) => exporters.stop(id),
    'a removal': ({ exporters }, id) => exporters.remove(id),
    'an erasure': ({ events }, _, eventId) => events.erase(eventId),
};

/** Makes the change while settings are being read. Resolves when what is sent is sent, with when the change was answered. */
async function changedMeanwhile(
    deployment: SimulatedDeployment,
    isReading: () => boolean,
    change: () => Promise<unknown>,
): Promise<number> {
    while (!isReading()) {
        await deployment.advance(1);
    }
    await deployment.advance(5);
    const answered = change().then(deployment.now);
    await deployment.advance(5_000);
    return await answered;
}

/** A store of which the first claim from a moment on is answered late. */
function lateClaims({ stores: { deliveries }, sleep }: SimulatedDeployment) {
    let [isSlow, isReading] = [false, false];
    const slow: DeliveryStore = {
        ...deliveries,
        claim: async (...args) => {
            const claims = await deliveries.claim(...args);
            if (isSlow) {
                [isSlow, isReading] = [false, true];
                await sleep(1_500);
            }
            return claims;
        },
    };
    const begin = (): void => {
        isSlow = true;
    };
    return { slow, begin, isReading: () => isReading };
}

/** A delivery that is given to a queue without a claim. */
async function handedOutWithoutClaim({ stores: { deliveries } }: SimulatedDeployment, queue: DeliveryQueue) {
    const event = sampleEvent({ body: JSON.stringify({ title: 'x' }) });
    await deliveries.accept([forAll(event)]);
    const { handedOut } = await deliveries.dispatch({ window: 9, breakerAfter: 3, limit: 9 });
    await queue.add(handedOut);
    return { id: only(handedOut).deliveryId, eventId: event.id };
}

for (const [name, change] of Object.entries(CHANGES)) {
    t.test(`a claim whose answer is late sends nothing after ${name} was answered`, async (t) => {
        const deployment = simulatedDeployment(t);
        const queue = memoryQueue();
        const { slow, begin, isReading } = lateClaims(deployment);
        const other = await deployment.start('other', { deliveries: slow, queue });
        const host = await deployment.start('host', { queue: { ...memoryQueue(), hasLostJobs: async () => false } });
        const id = await deployment.exporter(other);
        await deployment.advance(9_000);

        begin();
        const { eventId } = await handedOutWithoutClaim(deployment, queue);
        const answered = await changedMeanwhile(deployment, isReading, () => change(host, id, eventId));
        t.same(
            deployment.posts.filter(({ at, url }) => at > answered && url !== NEW_URL),
            [],
        );
        t.equal(deployment.posts.length, name === 'another URL' ? 1 : 0, 'what is left goes to where it is to go');
    });
}

t.test('where nothing was changed, a claim whose answer is late is sent', async (t) => {
    const { deployment, id } = await lateAndUnchanged(t);
    t.equal(deployment.posts.length, 1);
    t.match(await deployment.stores.deliveries.get(id), { state: 'delivered', attempts: 1 });
});

t.test('where that cannot be known in time, it is an own fault, and uses up no try', async (t) => {
    const { deployment, id } = await lateAndUnchanged(t, 1_500);
    const { deliveries } = deployment.stores;
    t.equal(deployment.posts.length, 1);
    t.match(await deliveries.get(id), { state: 'delivered', attempts: 2 });
    const attempts = await deliveries.attempts(id);
    t.match(
        attempts.map(({ outcome }) => outcome?.code),
        ['interrupted', 'delivered'],
    );
    t.match(attempts[0]?.outcome?.detail, /settings of the exporter/);
});

/** A delivery whose claim was answered late, after which each look at a delivery takes so many milliseconds. */
async function lateAndUnchanged(t: Test, look = 0) {
    const deployment = simulatedDeployment(t);
    const queue = memoryQueue();
    const { slow, begin } = lateClaims(deployment);
    const get: DeliveryStore['get'] = async (...args) => {
        await deployment.sleep(look);
        return await deployment.stores.deliveries.get(...args);
    };
    await deployment.exporter(await deployment.start('only', { deliveries: { ...slow, get }, queue }));
    await deployment.advance(9_000);
    begin();
    const { id } = await handedOutWithoutClaim(deployment, queue);
    await deployment.advance(20_000);
    return { deployment, id };
}

const OF_ALL_SIZES = [1, 2_000_000].flatMap((bytes) => Object.entries(CHANGES).map(([name, change]) => ({ bytes, name, change })));

for (const { bytes, name, change } of OF_ALL_SIZES) {
    t.test(`the process itself sends nothing after ${name} with what it has just read of ${bytes} characters`, async (t) => {
        const deployment = simulatedDeployment(t);
        const { deliveries } = deployment.stores;
        let isReading = false;
        const traces = present(deliveries.traces);
        const slow: DeliveryStore = {
            ...deliveries,
            traces: {
                ...traces,
                of: async (ids) => {
                    isReading = wanted.some((id) => ids.includes(id));
                    await deployment.sleep(300);
                    return await traces.of(ids);
                },
            },
        };
        const wanted: string[] = [];
        const changing = await deployment.start('only', { deliveries: slow, tracing: TRACING });
        const id = await deployment.exporter(changing);
        await deployment.advance(3_000);
        const event = sampleEvent({ body: JSON.stringify({ title: 'x'.repeat(bytes) }) });
        wanted.push(event.id);
        await deliveries.accept([forAll(event)]);
        const answered = await changedMeanwhile(
            deployment,
            () => isReading,
            () => change(changing, id, event.id),
        );
        t.same(
            deployment.posts.filter(({ at, url }) => at > answered && url !== NEW_URL),
            [],
        );
    });
}
