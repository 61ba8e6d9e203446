import t, { type Test } from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { forAll, sampleEvent, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { KEEP_FOR, type RetentionStore, retentionOf } from '../../../../lib/webhooks/deliveries/retention.ts';
import { simulatedDeployment } from '../../../support/simulated-deployment.ts';
import { type SimulatedTime, simulatedTime } from '../../../support/simulated-time.ts';

const DAY = 24 * 60 * 60_000;
const MINUTE = 60_000;

interface Kept {
    readonly time: SimulatedTime;
    readonly errors: Error[];
    readonly deliveries: ReturnType<typeof memoryWebhooks>['deliveries'];
    /** A process that looks, over these stores. */
    process(keepFor?: number | null, change?: Partial<RetentionStore>): ReturnType<typeof retentionOf>;
    /** An event, whose one delivery is held, so many milliseconds before the time began. */
    eventAt(before: number): Promise<string>;
    count(): Promise<number>;
}

async function kept(t: Test): Promise<Kept> {
    const time = simulatedTime(t);
    const start = Date.parse('2026-11-21T00:00:00Z');
    let before = 0;
    const { exporters, deliveries } = memoryWebhooks({ clock: () => new Date(start - before + time.now()) });
    await exporters.insert(sampleExporter({ state: 'stopped', stopReason: 'It is gone' }));
    const errors: Error[] = [];
    return {
        time,
        errors,
        deliveries,

        process(keepFor = KEEP_FOR.byDefault, change = {}) {
            const retention = { ...present(deliveries.retention), ...change };
            return retentionOf({
                deliveries: { ...deliveries, retention },
                keepFor,
                onError: (error) => errors.push(error),
            });
        },

        async eventAt(age) {
            before = age;
            const [accepted] = await deliveries.accept([forAll(sampleEvent())]);
            before = 0;
            return present(accepted).eventId;
        },

        count: () => deliveries.count({}, 100),
    };
}

t.test('removes at the start what was kept for 30 days, and later what has been by then', async (t) => {
    const { time, errors, process, eventAt, count } = await kept(t);
    await eventAt(40 * DAY);
    await eventAt(30 * DAY + 1);
    await eventAt(30 * DAY - 3 * 60 * MINUTE);
    await eventAt(DAY);
    const retention = process();
    t.equal(await count(), 4);
    retention.start();
    await time.advance(0);
    t.equal(await count(), 2);
    await time.advance(6 * 60 * MINUTE - 1);
    t.equal(await count(), 2, 'a turn is due every six hours');
    await time.advance(1);
    t.equal(await count(), 1);
    await retention.stop();
    await time.advance(60 * DAY);
    t.equal(await count(), 1, 'and none after the end');
    t.strictSame(errors, []);
});

t.test('takes a turn in one of the processes', async (t) => {
    const { time, process, deliveries } = await kept(t);
    let turns = 0;
    const honest = present(deliveries.retention);
    const counted: Partial<RetentionStore> = {
        expire(keepFor) {
            turns += 1;
            return honest.expire(keepFor);
        },
    };
    const processes = [process(DAY, counted), process(DAY, counted), process(DAY, counted)];
    for (const one of processes) {
        one.start();
        await time.advance(MINUTE);
    }
    await time.advance(DAY - 4 * MINUTE);
    t.equal(turns, 4);
    await Promise.all(processes.map((one) => one.stop()));
});

t.test('keeps everything for ever where that is asked for', async (t) => {
    const { time, process, eventAt, count } = await kept(t);
    await eventAt(9_999 * DAY);
    const retention = process(null);
    retention.start();
    await time.advance(DAY);
    t.equal(await count(), 1);
    await retention.stop();
});

t.test('reports a turn that fails, and takes the next', async (t) => {
    const { time, errors, process, eventAt, count, deliveries } = await kept(t);
    await eventAt(31 * DAY);
    const failures = [new Error('the store is away')];
    const retention = process(KEEP_FOR.byDefault, {
        async *expire(keepFor) {
            const failure = failures.pop();
            if (failure !== undefined) {
                throw failure;
            }
            yield* present(deliveries.retention).expire(keepFor);
        },
    });
    retention.start();
    await time.advance(MINUTE);
    t.match(errors, [{ message: 'the store is away' }]);
    t.equal(await count(), 1);
    await time.advance(6 * 60 * MINUTE);
    t.equal(await count(), 0);
    await retention.stop();
});

t.test('rests between two steps, and ends after the one that is being made', async (t) => {
    const { time, process } = await kept(t);
    let steps = 0;
    const retention = process(DAY, {
        async *expire() {
            for (;;) {
                steps += 1;
                yield { deliveries: 0, events: 0 };
            }
        },
    });
    retention.start();
    await time.advance(1_000);
    t.equal(steps, 6);
    await retention.stop();
    await time.advance(DAY);
    t.equal(steps, 6);
});

t.test('is the business of hosts', async (t) => {
    const deployment = simulatedDeployment(t);
    const { begin } = present(deployment.stores.deliveries.retention);
    const host = await deployment.start('host');
    t.equal(await begin(1), false, 'a host has begun a turn');
    await deployment.finish(host.close());
    await deployment.advance(DAY);
    const worker = await deployment.start('worker', { role: 'worker' });
    await deployment.advance(MINUTE);
    t.equal(await begin(DAY), true, 'and a worker none');
    await deployment.finish(worker.close());
});
