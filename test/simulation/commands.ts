import fc from 'fast-check';
import { CHANGES, type Deployment, EXPORTERS, hostOf, ORDERED, PLACES } from './deployment.ts';
import { BEHAVIOURS, type Behaviour, DEADLY } from './receivers.ts';
import { QUEUE_FAULTS, RESOLVER_FAULTS, STORE_FAULTS } from './weather.ts';

/** What is known of a deployment without looking: what was commanded. */
export interface Commanded {
    /** Places where a process is wanted. */
    readonly places: Set<string>;
    /** Exporters that are gone, by their index. */
    readonly removed: Set<number>;
    readonly stopped: Set<number>;
}

type Command = fc.AsyncCommand<Commanded, Deployment>;

const second = 1_000;

function command(text: string, check: (model: Commanded) => boolean, run: (deployment: Deployment, model: Commanded) => void): Command {
    return {
        check,
        async run(model, deployment) {
            deployment.timeline.note(`== ${text}`);
            run(deployment, model);
            await deployment.timeline.advance(10);
        },
        toString: () => text,
    };
}

const always = (): boolean => true;
const place = fc.constantFrom(...PLACES);
/** A process, or all of them. */
const who = fc.oneof(fc.constant(null), place);
/** Not the first, which nobody touches: whatever happens to the others must not be seen by it. */
const exporter = fc.integer({ min: 1, max: EXPORTERS - 1 });
const spell = fc.integer({ min: 100, max: 15 * second });

const publish = fc.integer({ min: 1, max: 5 }).map((count) =>
    command(`publish ${count}`, always, (deployment) => {
        for (let index = 0; index < count; index += 1) {
            deployment.publish();
        }
    }),
);

const publishTogether = fc
    .integer({ min: 2, max: 6 })
    .map((count) => command(`publish ${count} together`, always, (deployment) => deployment.publishTogether(count)));

const publishIn = fc.record({ milliseconds: fc.integer({ min: 1, max: 10 * second }), commits: fc.boolean() }).map((how) =>
    command(`publish, ${how.commits ? 'committed' : 'rolled back'} after ${how.milliseconds} ms`, always, (deployment) => {
        deployment.publishIn(how);
    }),
);

const wait = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 300, max: 20 * second })).map(
    (milliseconds): Command => ({
        check: always,
        run: async (_, { timeline }) => await timeline.advance(milliseconds),
        toString: () => `wait ${milliseconds} ms`,
    }),
);

const kill = place.map((at) =>
    command(
        `kill ${at}`,
        ({ places }) => places.has(at),
        (deployment) => deployment.at(at)?.kill(),
    ),
);

const dieAt = fc.tuple(place, fc.integer({ min: 0, max: 40 }), fc.boolean()).map(([at, call, after]) =>
    command(
        `let ${at} die ${after ? 'after' : 'at'} its call ${call}`,
        ({ places }) => places.has(at),
        (deployment) => deployment.at(at)?.dieAt(call, after),
    ),
);

const freeze = fc.tuple(place, fc.integer({ min: 500, max: 30 * second })).map(([at, milliseconds]) =>
    command(
        `freeze ${at} for ${milliseconds} ms`,
        ({ places }) => places.has(at),
        (deployment) => deployment.at(at)?.freeze(milliseconds),
    ),
);

const start = place.map((at) =>
    command(
        `start ${at}`,
        ({ places }) => !places.has(at),
        (deployment, { places }) => {
            places.add(at);
            deployment.start(at);
        },
    ),
);

const stop = fc.tuple(place, fc.boolean()).map(([at, again]) =>
    command(
        `${again ? 'restart' : 'stop'} ${at}`,
        ({ places }) => places.has(at) && (again || places.size > 1),
        (deployment, { places }) => {
            if (!again) {
                places.delete(at);
            }
            deployment.stop(at, again);
        },
    ),
);

const receiver = fc
    .tuple(exporter, fc.constantFrom<Behaviour>(...BEHAVIOURS))
    .map(([index, behaviour]) =>
        command(`receiver ${index} ${behaviour}`, always, ({ receivers }) => receivers.behaviours.set(hostOf(index), behaviour)),
    );

const store = fc
    .tuple(fc.constantFrom(...STORE_FAULTS), spell, who)
    .map(([fault, milliseconds, at]) =>
        command(`store ${fault} for ${milliseconds} ms to ${at ?? 'all'}`, always, (deployment) =>
            deployment.weather.changeStore(fault, milliseconds, at),
        ),
    );

const queue = fc
    .tuple(fc.constantFrom(...QUEUE_FAULTS), spell, who)
    .map(([fault, milliseconds, at]) =>
        command(`queue ${fault} for ${milliseconds} ms to ${at ?? 'all'}`, always, (deployment) =>
            deployment.weather.changeQueue(fault, milliseconds, at),
        ),
    );

const resolver = fc
    .tuple(fc.constantFrom(...RESOLVER_FAULTS), spell)
    .map(([fault, milliseconds]) =>
        command(`resolver ${fault} for ${milliseconds} ms`, always, (deployment) => deployment.weather.changeResolver(fault, milliseconds)),
    );

const emptyQueue = fc.constant(command('empty the queue', always, (deployment) => deployment.queue.empty()));

const exporterIsThere =
    (index: number) =>
    ({ removed }: Commanded): boolean =>
        !removed.has(index);

const startOrStop = exporter.map((index) =>
    command(`start or stop exporter ${index}`, exporterIsThere(index), (deployment, { stopped }) => {
        const starts = stopped.delete(index);
        if (!starts) {
            stopped.add(index);
        }
        deployment.manageExporter(index, ({ exporters }, id) => (starts ? exporters.start(id) : exporters.stop(id)));
    }),
);

const change = fc
    .tuple(exporter, fc.constantFrom(...CHANGES))
    .map(([index, to]) =>
        command(`change exporter ${index} to ${JSON.stringify(to)}`, exporterIsThere(index), (deployment) => deployment.change(index, to)),
    );

/** As in a rolling deployment: one process is started again at once, the others when they see that they are outdated. */
const changeSettings = place.map((at) =>
    command(
        `change the settings, restart ${at}`,
        ({ places }) => places.has(at),
        (deployment) => {
            deployment.changeSettings();
            deployment.stop(at, true);
        },
    ),
);

const remove = exporter.map((index) =>
    command(`remove exporter ${index}`, exporterIsThere(index), (deployment, { removed }) => {
        removed.add(index);
        deployment.manageExporter(index, ({ exporters }, id) => exporters.remove(id));
    }),
);

const replay = fc.nat(50).map((index) =>
    command(`replay delivery ${index}`, always, (deployment) => {
        const ids = [...deployment.ledger.entries.keys()];
        deployment.manage(({ deliveries }) => deliveries.replay(ids[index % ids.length] as string));
    }),
);

const replayMany = fc
    .record({
        index: exporter,
        rate: fc.constantFrom(1, 5, 1_000),
        failedFor: fc.option(fc.integer({ min: 0, max: 120 * second }), { freq: 2 }),
        cancelAfter: fc.option(fc.integer({ min: 0, max: 3 * second }), { freq: 1 }),
    })
    .map(({ index, ...how }) =>
        command(`replay of exporter ${index} ${JSON.stringify(how)}`, exporterIsThere(index), (deployment) =>
            deployment.replayMany(index, how),
        ),
    );

const deadly = fc.constant(command('publish what ends its process', always, (deployment) => deployment.publish(DEADLY)));

/** What was taken is heard of late, and who else tries meanwhile does so in vain. */
const hearLate = fc.tuple(place, exporter, fc.integer({ min: 8 * second, max: 14 * second })).map(
    ([at, index, milliseconds]): Command => ({
        check: ({ places, stopped }) => places.has(at) && !stopped.has(index),
        async run(_, deployment) {
            deployment.timeline.note(`== ${this}`);
            deployment.receivers.behaviours.delete(hostOf(index));
            deployment.publish();
            await deployment.timeline.advance(25);
            deployment.at(at)?.freeze(milliseconds);
            deployment.receivers.behaviours.set(hostOf(index), 'fails');
        },
        toString: () => `publish, freeze ${at} for ${milliseconds} ms, receiver ${index} fails`,
    }),
);

/** What is published for an exporter that its receiver has stopped is held, whether it is started again at once or in the end. */
const hold = fc.tuple(exporter, fc.boolean()).map(
    ([index, again]): Command => ({
        check: ({ stopped, removed }) => !stopped.has(index) && !removed.has(index),
        async run(_, deployment) {
            deployment.timeline.note(`== ${this}`);
            deployment.receivers.behaviours.set(hostOf(index), 'is gone');
            deployment.publish();
            await deployment.timeline.advance(500);
            deployment.publish();
            await deployment.timeline.advance(25);
            deployment.receivers.behaviours.delete(hostOf(index));
            if (again) {
                deployment.manageExporter(index, ({ exporters }, id) => exporters.start(id));
            }
        },
        toString: () => `publish, receiver ${index} is gone, publish${again ? `, start exporter ${index}` : ''}`,
    }),
);

/** What fails for good keeps back what has its order key, for a while or until all is well. */
const holdKeys = fc.boolean().map(
    (again): Command => ({
        check: exporterIsThere(ORDERED),
        async run(_, deployment) {
            deployment.timeline.note(`== ${this}`);
            deployment.change(ORDERED, { afterExhausted: 'hold', schedule: [second] });
            deployment.receivers.behaviours.set(hostOf(ORDERED), 'fails');
            deployment.publishTogether(8);
            await deployment.timeline.advance(4 * second);
            deployment.receivers.behaviours.delete(hostOf(ORDERED));
            deployment.publishTogether(8);
            await deployment.timeline.advance(8 * second);
            if (again) {
                deployment.change(ORDERED, { afterExhausted: 'skip' });
            }
        },
        toString: () => `exporter ${ORDERED} holds keys, publish 8 that fail and 8${again ? ', and holds none' : ''}`,
    }),
);

/** Changes that a receiver sees. */
const seen = CHANGES.filter((change) => 'secret' in change || 'path' in change || 'headers' in change);

/** An exporter of which processes know something is changed, stopped or removed while what was handed out before is on its way. */
const changeAmid = fc.tuple(exporter, fc.constantFrom(...seen, 'stop' as const, 'remove' as const)).map(
    ([index, to]): Command => ({
        check: exporterIsThere(index),
        async run({ removed, stopped }, deployment) {
            deployment.timeline.note(`== ${this}`);
            deployment.receivers.behaviours.delete(hostOf(index));
            const publishMany = async (count: number, milliseconds: number): Promise<void> => {
                for (let published = 0; published < count; published += 1) {
                    deployment.publish();
                }
                await deployment.timeline.advance(milliseconds);
            };
            await publishMany(2, 150);
            // The test that a change sends, and waits for, comes after.
            deployment.weather.changeQueue('delays jobs a little', 12, null);
            await publishMany(4, 12);
            if (typeof to === 'object') {
                deployment.change(index, to);
            } else {
                (to === 'stop' ? stopped : removed).add(index);
                deployment.manageExporter(index, ({ exporters }, id) => exporters[to](id));
            }
            await deployment.timeline.advance(1_000);
        },
        toString: () => `publish 2 and 4, which are on their way, change exporter ${index} to ${JSON.stringify(to)}`,
    }),
);

/** Sequences of what happens to a deployment. Those that are tried come out of the seed. */
export const commandSequences: fc.Arbitrary<Iterable<Command>> = fc.commands(
    [
        publish,
        publish,
        publishTogether,
        publishIn,
        publishIn,
        wait,
        wait,
        wait,
        kill,
        dieAt,
        dieAt,
        freeze,
        hearLate,
        hold,
        holdKeys,
        start,
        stop,
        receiver,
        receiver,
        store,
        queue,
        resolver,
        emptyQueue,
        startOrStop,
        change,
        change,
        changeAmid,
        changeAmid,
        changeSettings,
        replay,
        replayMany,
    ],
    { maxCommands: 40, size: 'max' },
);

/** Retries are due while more first tries wait than the rate of a deployment lets go for a while. */
const backlog = fc.tuple(exporter, fc.integer({ min: 2, max: 12 })).map(
    ([index, count]): Command => ({
        check: exporterIsThere(index),
        async run(_, deployment) {
            deployment.timeline.note(`== ${this}`);
            deployment.receivers.behaviours.set(hostOf(index), 'fails');
            deployment.publishTogether(8);
            await deployment.timeline.advance(1.5 * second);
            deployment.receivers.behaviours.delete(hostOf(index));
            deployment.publishTogether(5 * count);
            await deployment.timeline.advance(10 * second);
        },
        toString: () => `publish 8 together, which receiver ${index} fails, and ${5 * count} when it is well`,
    }),
);

/** The same where the deployment has a rate. */
export const ratedSequences: fc.Arbitrary<Iterable<Command>> = fc.commands(
    [
        backlog,
        backlog,
        publish,
        wait,
        wait,
        kill,
        dieAt,
        start,
        stop,
        receiver,
        store,
        queue,
        startOrStop,
        change,
        changeSettings,
        replay,
        replayMany,
    ],
    { maxCommands: 14, size: 'max' },
);

/** The same with what is rare because it takes long. */
export const rareSequences: fc.Arbitrary<Iterable<Command>> = fc.commands([publish, wait, wait, kill, deadly, receiver, remove, stop], {
    maxCommands: 12,
    size: 'max',
});
