import t from 'tap';
import { memoryQueue } from '../../../adapters/memory/index.ts';
import { type PoolLike, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { migratedMemory } from '../../support/migrated-database.ts';
import { recordingProcess } from '../../support/recording-process.ts';
import { INVESTIGATION } from '../../support/simulated-deployment.ts';

/** Whatever else runs in the background does so seldom that most events come between. */
const EVENTS = 10;

t.test('accepts, sends and finishes an event by two statements', async (t) => {
    const database = await migratedMemory();
    t.teardown(() => database.end());
    const statements: string[] = [];
    const noting = <Client extends Pick<PoolLike, 'query'>>(client: Client): Client =>
        new Proxy(client, {
            get(target, name) {
                const value = Reflect.get(target, name);
                if (name !== 'query') {
                    return typeof value === 'function' ? value.bind(target) : value;
                }
                return (...args: unknown[]) => {
                    statements.push(JSON.stringify(args[0]));
                    return (value as (...args: unknown[]) => unknown).apply(target, args);
                };
            },
        });
    const pool: PoolLike = { embedded: true, query: noting(database).query, connect: async () => noting(await database.connect()) };

    const stores = postgresWebhooks({ pool });
    let delivered = (): void => {};
    const self = recordingProcess(t, stores, {
        queue: memoryQueue(),
        onEvent: ({ type }) => {
            if (type === 'delivery.delivered') {
                delivered();
            }
        },
    });
    const { exporter } = await self.exporters.create({ url: 'https://receiver.example/' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    await self.start();
    await self.work(['default']);

    const each: string[][] = [];
    for (let event = 0; event < EVENTS; event += 1) {
        statements.length = 0;
        const outcome = new Promise<void>((resolve) => (delivered = resolve));
        await self.publish('idr_investigation_created', { ...INVESTIGATION, title: String(event) });
        await outcome;
        each.push([...statements]);
    }
    const least = each.sort((one, other) => one.length - other.length)[0] as string[];
    t.match(least, [/accept_single_event/, /finish_single_delivered/]);
    t.equal(least.length, 2);
    t.equal(self.sent.length, EVENTS);
});
