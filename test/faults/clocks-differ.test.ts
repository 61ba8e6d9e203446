import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryApiKeys } from '../../adapters/memory/index.ts';
import { postgresApiKeys, postgresInventory, postgresRecords } from '../../adapters/postgres/index.ts';
import { type ApiKeys, apiKeys } from '../../lib/keys/api-keys.ts';
import type { HttpsRecord } from '../../lib/records/record.ts';
import { migratedPool } from '../support/migrated-database.ts';
import { type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

const HOUR = 3_600_000;

/** The clock of this process, which jumps by whatever is said next. */
function jumpingClock(t: Test): (milliseconds: number) => void {
    const RealDate = Date;
    let offset = 0;
    globalThis.Date = new Proxy(RealDate, {
        construct: (target, args) => Reflect.construct(target, args.length > 0 ? args : [target.now() + offset]),
        get: (target, key) => (key === 'now' ? () => target.now() + offset : Reflect.get(target, key)),
    });
    t.teardown(() => {
        globalThis.Date = RealDate;
    });
    return (milliseconds) => {
        offset = milliseconds;
    };
}

function besidesTheClock({ errors }: SimulatedProcess): readonly Error[] {
    return errors.filter(({ message }) => !message.startsWith('The clock of this process'));
}

t.test('two processes whose clocks are an hour apart send each event once', async (t) => {
    const setClock = jumpingClock(t);
    const deployment = simulatedDeployment(t);
    setClock(HOUR);
    const ahead = await deployment.start('ahead');
    setClock(-HOUR);
    const behind = await deployment.start('behind');
    await deployment.exporter(ahead);

    let ticks = 0;
    deployment.receive = () => {
        ticks += 1;
        setClock(ticks % 2 === 0 ? HOUR : -HOUR);
        return { result: 204, after: 10_000 };
    };
    await deployment.publish(ahead, 3);
    await deployment.publish(behind, 2);
    for (let second = 0; second < 60; second += 1) {
        setClock(second % 2 === 0 ? HOUR : -HOUR);
        await deployment.advance(1_000);
    }
    t.equal(deployment.posts.length, 5);
    t.strictSame(await deployment.states(), { delivered: 5 });
});

t.test('a clock that is set back stops neither retries nor the sweep', async (t) => {
    const setClock = jumpingClock(t);
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    const second = await deployment.start('second');
    await deployment.exporter(first);
    deployment.receive = ({ by }) => (by === 'first' ? { result: 503 } : { result: 204 });
    await deployment.publish(first, 1);
    await deployment.advance(100);
    setClock(-HOUR);
    first.kill();
    deployment.receive = () => ({ result: 204 });
    await deployment.advance(20_000);
    t.strictSame(await deployment.states(), { delivered: 1 });
    t.strictSame(
        second.errors.filter(({ message }) => !message.startsWith('The clock of this process')),
        [],
    );
});

t.test('what a process measures itself goes on when its clock is set back: claims of the dead are found', async (t) => {
    const setClock = jumpingClock(t);
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    await deployment.exporter(first);
    deployment.receive = ({ by }) => ({ result: 204, after: by === 'first' ? Number.POSITIVE_INFINITY : 50 });
    await deployment.publish(first, 1);
    await deployment.advance(100);
    const second = await deployment.start('second');
    first.kill();
    setClock(-HOUR);
    await deployment.advance(25_000);
    t.strictSame(await deployment.states(), { delivered: 1 });
    t.equal(deployment.posts.length, 2);
    t.strictSame(besidesTheClock(second), []);
});

t.test('the start names a difference of more than a second between the clocks of process and store', async (t) => {
    const setClock = jumpingClock(t);
    const deployment = simulatedDeployment(t);
    const storeTime = (await deployment.stores.deliveries.now()).getTime();
    const startWith = async (difference: number) => {
        setClock(0);
        setClock(storeTime - Date.now() + difference);
        return (await deployment.start(`by ${difference}`)).errors;
    };
    t.strictSame(await startWith(0), []);
    t.match(await startWith(HOUR), [
        { code: 'MISCONFIGURED', message: /^The clock of this process is 3600\.\d s ahead of that of the store$/ },
    ]);
    t.match(await startWith(-HOUR), [{ message: /^The clock of this process is (3600\.0|3599\.9) s behind that of the store$/ }]);
});

t.test('an answer of the store that is long on its way is no difference', async (t) => {
    const setClock = jumpingClock(t);
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const offset = (await deliveries.now()).getTime() - Date.now();
    setClock(offset);
    const now = async () => {
        const answer = await deliveries.now();
        setClock(offset + 3_000);
        return answer;
    };
    t.strictSame((await deployment.start('far', { deliveries: { ...deliveries, now } })).errors, []);
});

t.test('what a process writes whose clock is behind is found by who asks for what has changed since, and not taken for old', async (t) => {
    const pool = await migratedPool(t, { max: 4 });
    const storeTime = async (): Promise<Date> => (await pool.query('select scanwire.now() as now')).rows[0].now;
    const inventory = postgresInventory({ pool });
    const records = postgresRecords({ pool });
    const before = await storeTime();
    const setClock = jumpingClock(t);
    setClock(-HOUR);
    const { workspace } = await inventory.importHosts('default', Readable.from([{ address: '192.0.2.1' }]));
    const record = { data: 'aGk=', host: 'example.com', ip: '192.0.2.2', port: 443, path: '/' } as HttpsRecord;
    const [added] = await records.add([record], { enrich: { workspace: 'default' } });
    setClock(0);

    const changed = await Readable.from(inventory.hosts.select?.([workspace.id], { where: { updated_since: before } }) ?? []).toArray();
    t.equal(changed.flat().length, 2);
    const stored = await records.get(added?.id as number);
    t.ok((stored?.importedAt as Date) >= before && (stored?.importedAt as Date) <= (await storeTime()));
    t.match(await inventory.expireHosts?.('default', { notSeenSince: new Date(before.getTime() - HOUR / 2) }), { hosts: 0 });
});

t.test('keys have the times of the database, whatever the clock of the process says', async (t) => {
    const pool = await migratedPool(t, { max: 4 });
    const store = postgresApiKeys({ pool });
    const keys = apiKeys({ store, revealable: false });
    const setClock = jumpingClock(t);
    const before = await store.now?.();
    const isOfDatabase = async (time: Date | null | undefined): Promise<boolean> =>
        (time as Date) >= (before as Date) && (time as Date) <= ((await store.now?.()) as Date);

    setClock(HOUR);
    const { id, key } = await keys.create('ahead');
    const inHalfAnHour = new Date((before as Date).getTime() + HOUR / 2);
    await t.resolves(keys.create('short', { expiresAt: inHalfAnHour }));
    t.ok(await keys.verify(key));
    await until(async () => (await store.get(id))?.lastUsedAt !== null);
    setClock(-HOUR);
    await t.rejects(keys.create('over', { expiresAt: before as Date }), { code: 'INVALID_INPUT', field: 'expiresAt' });
    await keys.revoke(id);

    const stored = await store.get(id);
    for (const field of ['createdAt', 'lastUsedAt', 'revokedAt'] as const) {
        t.ok(await isOfDatabase(stored?.[field]), field);
    }
});

t.test('a key that another process has just used is not noted again, whatever the clock of this one says', async (t) => {
    const setClock = jumpingClock(t);
    const time = { now: Date.now() };
    const store = memoryApiKeys({ clock: () => new Date(time.now) });
    const noted: Date[] = [];
    const touch = async (id: string, at: Date): Promise<void> => {
        noted.push(at);
        await store.touch(id, at);
    };
    const [first, second] = [1, 2].map(() => apiKeys({ store: { ...store, touch }, revealable: false })) as [ApiKeys, ApiKeys];
    const { key } = await first.create('shared');
    for (const [offset, keys] of [
        [0, first],
        [HOUR, second],
        [-HOUR, second],
    ] as const) {
        setClock(offset);
        await keys.verify(key);
        await turn();
        time.now += 1_000;
    }
    t.equal(noted.length, 1);
});

/** The clocks of PostgreSQL, but for the one of the schema. */
const CLOCK =
    /(?<![\w.])(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|\b(?:current_time(?:stamp)?|current_date|localtime(?:stamp)?)\b/i;

t.test('statements and functions read the time of the schema, and no other', async (t) => {
    const folder = fileURLToPath(new URL('../../adapters/postgres', import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
        (name) => name.endsWith('.js') && !/^migrat/.test(name),
    );
    t.ok(files.length > 20);
    // What the store itself is asked for its time by is a method of that name.
    const statementsIn = (code: string): string => code.replaceAll(/\/\*.*?\*\/|\/\/[^\n]*|async now\(\)/gs, '');
    t.strictSame(
        files.filter((name) => CLOCK.test(statementsIn(readFileSync(join(folder, name), 'utf8')))),
        [],
    );

    const pool = await migratedPool(t, { max: 1 });
    const { rows } = await pool.query<{ name: string; body: string }>(
        `select p.proname as name, coalesce(p.prosrc, '') as body from pg_proc p where p.pronamespace = 'scanwire'::regnamespace`,
    );
    t.ok(rows.length > 20);
    t.strictSame(
        rows.filter(({ body }) => CLOCK.test(body.replaceAll(/--.*/g, ''))).map(({ name }) => name),
        ['now'],
    );
});
