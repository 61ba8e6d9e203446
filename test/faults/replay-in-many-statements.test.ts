import t, { type Test } from 'tap';
import type { ClaimRequest, DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

const RATE = 100;
const FAILED = 300;

type Refusal = (requests: readonly ClaimRequest[]) => boolean;

/** The methods of a store that were called, each time with how many items they got. */
type Calls = Record<'claim' | 'recordOutcomes' | 'dispatch', number[]>;

/** A process that was told that an exporter has failed to take so many, from where its calls are counted. */
async function withFailed(
    t: Test,
    refusesClaims: Refusal = () => false,
): Promise<{ deployment: SimulatedDeployment; process: SimulatedProcess; exporterId: string; calls: Calls }> {
    const deployment = simulatedDeployment(t);
    const calls: Calls = { claim: [], recordOutcomes: [], dispatch: [] };
    const process = await deployment.start('only', { deliveries: counted(deployment.stores.deliveries, calls, refusesClaims) });
    const exporterId = await deployment.exporter(process);
    deployment.receive = () => ({ result: 400 });
    await deployment.publish(process, FAILED);
    await deployment.advance(1_000);
    t.match(await deployment.states(), { pending: FAILED });

    deployment.receive = () => ({ result: 204 });
    deployment.posts.length = 0;
    for (const sizes of Object.values(calls)) {
        sizes.length = 0;
    }
    return { deployment, process, exporterId, calls };
}

function counted(store: DeliveryStore, calls: Calls, refusesClaims: Refusal): DeliveryStore {
    return {
        ...store,

        async claim(requests, ...rest) {
            calls.claim.push(requests.length);
            if (refusesClaims(requests)) {
                throw new Error('Too many at once');
            }
            return store.claim(requests, ...rest);
        },

        recordOutcomes(outcomes, ...rest) {
            calls.recordOutcomes.push(outcomes.length);
            return store.recordOutcomes(outcomes, ...rest);
        },

        dispatch(options) {
            calls.dispatch.push(1);
            return store.dispatch(options);
        },
    };
}

t.test('a replay reads together what it sends in turns, and records together how that ended', async (t) => {
    const { deployment, process, exporterId, calls } = await withFailed(t);
    await process.deliveries.replays.begin({ exporterId, failedSince: new Date(0), rate: RATE });
    await deployment.advance(6_000);
    t.match(await deployment.states(), { delivered: FAILED });
    t.equal(deployment.posts.length, FAILED, 'each once');
    t.ok(calls.dispatch.length < 6 * 15, `few steps a second: ${calls.dispatch.length}`);
    t.ok(calls.claim.length <= FAILED / 8, `few reads: ${calls.claim}`);
    t.ok(calls.recordOutcomes.length <= FAILED / 2, `few ends: ${calls.recordOutcomes}`);
});

t.test('how a new event ended is not held up by what is replayed, and takes the ends of that along', async (t) => {
    const { deployment, process, exporterId, calls } = await withFailed(t);
    await process.deliveries.replays.begin({ exporterId, failedSince: new Date(0), rate: 1 });
    await deployment.advance(10);
    t.equal(deployment.posts.length, 1, 'the replay has begun');
    await deployment.publish(process, 1);
    await deployment.advance(45);
    t.strictSame(calls.recordOutcomes, [], 'what is replayed was answered, 50 ms after it was sent');
    await deployment.advance(10);
    t.strictSame(calls.recordOutcomes, [2]);
    t.match(await deployment.states(), { delivered: 2 });
});

t.test('what cannot be read ahead is read in its turn', async (t) => {
    const { deployment, process, exporterId, calls } = await withFailed(t, (requests) => requests.length > 1);
    await process.deliveries.replays.begin({ exporterId, failedSince: new Date(0), rate: RATE });
    await deployment.advance(6_000);
    t.match(await deployment.states(), { delivered: FAILED });
    t.ok(calls.claim.filter((count) => count > 1).length > 5);
    t.ok(process.errors.some(({ message }) => message === 'Too many at once'));
});
