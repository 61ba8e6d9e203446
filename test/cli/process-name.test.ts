import type { ChildProcess } from 'node:child_process';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { dataOf, serveIn } from '../support/served.ts';
import { testDatabase } from '../support/test-database.ts';

function errorsOf(process: ChildProcess): () => string {
    let text = '';
    process.stderr?.on('data', (piece) => {
        text += piece;
    });
    return () => text;
}

/** A worker that sends for `default`, and what it has written to stderr. */
async function workerOf(t: Test, args: readonly string[], env: Readonly<Record<string, string>>) {
    const worker = startScanwire(['worker', '--collector', 'default', ...args, '--json'], { env });
    t.teardown(() => worker.kill('SIGKILL'));
    const errors = errorsOf(worker);
    t.match(await nextJson(worker, linesOf(worker)), { collectors: ['default'] });
    return { worker, errors };
}

t.test('a process has the name of --process-name or SCANWIRE_PROCESS_NAME, and the later of two that have the same sends', async (t) => {
    const data = dataOf(t);
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const env = { DATABASE_URL: database.url };
    await serveIn(t, env, data, '--process-name', 'host-0');
    const client = new pg.Client(database.url);
    await client.connect();
    t.teardown(() => client.end());
    const slotsOf = async (): Promise<readonly (readonly [name: string, slots: number])[]> => {
        const { rows } = await client.query<{ name: string; slots: number }>(
            `select process::json->>'name' as name, coalesce((slots->>'default')::integer, 0) as slots from scanwire.worker_sessions`,
        );
        return rows.map(({ name, slots }) => [name, slots] as const).toSorted(([one], [other]) => (one < other ? -1 : 1));
    };
    t.strictSame(await slotsOf(), [['host-0', 400]]);

    const first = await workerOf(t, ['--data', data, '--concurrency', '5'], { ...env, SCANWIRE_PROCESS_NAME: 'worker-0' });
    t.strictSame(await slotsOf(), [
        ['host-0', 400],
        ['worker-0', 5],
    ]);
    const second = await workerOf(t, ['--data', data, '--concurrency', '6', '--process-name', 'worker-0'], env);
    await until(async () => first.errors().includes('another process of the deployment has begun under the processName of this one'));
    await until(async () => (await slotsOf()).filter(([, slots]) => slots > 0).length === 2);
    t.match(
        (await slotsOf()).filter(([, slots]) => slots > 0),
        [
            ['host-0', 400],
            ['worker-0', 6],
        ],
    );
    t.equal(second.errors(), '');
    t.strictSame([await ended(first.worker, 'SIGTERM'), await ended(second.worker, 'SIGTERM')], [0, 0]);
});

t.test('refuses what is no name, and takes a variable that is set to nothing for none', async (t) => {
    const args = ['worker', '--collector', 'default', '--data', t.testdir()];
    const message = /process-name.*It must be 1 to 255 characters, and no control characters\./;
    for (const name of ['', 'a\nb', 'x'.repeat(256)]) {
        t.match(await scanwire([...args, '--process-name', name]), { code: 2, stderr: message });
    }
    t.match(await scanwire(args, { env: { SCANWIRE_PROCESS_NAME: 'a\nb' } }), { code: 2, stderr: message });
    t.match(await scanwire(args, { env: { SCANWIRE_PROCESS_NAME: '' } }), { code: 1, stderr: /DATABASE_URL is not set/ });
});
