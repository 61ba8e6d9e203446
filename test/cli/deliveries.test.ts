import t from 'tap';
import { forAll, sampleEvent } from '../../adapters/contract/webhooks/fixture.ts';
import { dataFolder } from '../../cli/data-folder.ts';
import { openStores } from '../../cli/stores.ts';
import { ended, linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { fixture, json, said, serve, usedDataOf } from '../support/served.ts';

t.test('delivers to a receiver that verifies, and opens loopback to nothing else', async (t) => {
    const data = await usedDataOf(t);
    const secret = 'a secret of ours';
    const receiver = startScanwire(['listen', '--port', '0', '--secret', secret, '--json']);
    t.teardown(() => receiver.kill('SIGKILL'));
    const messages = linesOf(receiver);
    const { listening } = (await nextJson(receiver, messages)) as { listening: string };
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json'], {
        env: { SCANWIRE_EGRESS_ALLOW: `198.51.100.0/24, ${new URL(listening).host}` },
    });
    t.teardown(() => server.kill('SIGKILL'));
    await nextJson(server, linesOf(server));

    const refused = await said(['exporters', 'create', '--url', 'http://127.0.0.1:9/', '--data', data]);
    t.match(refused, { code: 1, stderr: /^scanwire: URL points to a loopback address/ });

    const settings = [
        '--secret',
        secret,
        '--name',
        'Ours',
        '--header',
        'Authorization: Bearer x',
        '--signature',
        'hex',
        '--signature',
        'standard-webhooks',
    ];
    const exporter = await json<{ id: string; secret: string }>(data, 'exporters', 'create', '--url', listening, ...settings, '--start');
    t.match(exporter, { secret, state: 'running', test: { attempt: { code: 'delivered', status: 204 } } });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: true, forms: ['hex', 'standard-webhooks'] });

    const published = await json<{ deliveries: string[] }>(
        data,
        'events',
        'publish',
        'idr_investigation_created',
        fixture('events/investigation.json'),
    );
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });
    const [delivery = ''] = published.deliveries;
    t.match(await json(data, 'deliveries', 'list', '--state', 'delivered', '--exporter', exporter.id, '--limit', '5'), [
        { id: delivery },
        {},
    ]);
    t.match(await json(data, 'deliveries', 'show', delivery), {
        state: 'delivered',
        attempts: 1,
        history: [{ number: 1, startedAt: String, finishedAt: String, status: 204, code: 'delivered', timings: { total: Number } }],
    });
    t.match(await json(data, 'deliveries', 'show', delivery, '--message'), { id: delivery, message: { bytes: Number, failure: null } });
    const shown = await said(['deliveries', 'show', delivery, '--message', '--data', data]);
    t.match(shown, { code: 0, stdout: /Content-Type: application\/json[\s\S]*\n\{"[\s\S]*\d+ bytes/ });
    t.match(await json(data, 'exporters', 'show', exporter.id), {
        health: { breaker: 'closed', lastOutcome: { code: 'delivered', detail: 'Answered 204' }, backlog: { waiting: 0, more: false } },
    });
    t.match(await said(['deliveries', 'discard', delivery, '--data', data]), { code: 1, stderr: /Cannot discard a delivery that/ });
    await json(data, 'deliveries', 'replay', delivery);
    const failed = ['--exporter', exporter.id, '--failed-since', '1h'];
    t.same(await json(data, 'deliveries', 'replay', ...failed, '--dry-run'), { total: 0 });
    const planned = await json<{ id: string }>(data, 'deliveries', 'replay', '--exporter', exporter.id, '--held', '--rate', '5/s');
    t.match(planned, { failedSince: null, rate: 5, total: 0 });
    t.match(await said(['deliveries', 'replays', '--data', data]), { code: 0, stdout: / held +5\/s +0 of 0 / });
    t.match(await json(data, 'deliveries', 'replay', '--cancel', planned.id), { id: planned.id });
    t.match(await said(['deliveries', 'replay', ...failed, '--held', '--data', data]), { code: 2, stderr: /Replay needs one of/ });
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });

    const wrong = await said(['exporters', 'update', exporter.id, '--secret', 'another secret', '--no-header', '--data', data, '--json']);
    t.match(JSON.parse(wrong.stdout), { headerNames: [], test: { attempt: { code: 'client_error', status: 401 } } });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: false, forms: [], reason: String });
    t.match(await said(['exporters', 'test', exporter.id, '--data', data]), { code: 1, stdout: /^Test failed: client_error 401/ });

    const { stdout } = await said([
        'deliveries',
        'list',
        '--kind',
        'test',
        '--since',
        '1h',
        '--until',
        '2099-01-01',
        '--count',
        '--data',
        data,
    ]);
    t.match(stdout, /^[1-9]\n$/);
    t.same(await json(data, 'deliveries', 'list', '--until', '1h', '--count'), { count: 0, more: false });

    t.match(await json(data, 'exporters', 'pause', exporter.id), { state: 'running', pausedAt: String });
    t.match(await said(['exporters', 'list', '--data', data]), { stdout: / running, paused / });
    t.match(await json(data, 'exporters', 'resume', exporter.id), { pausedAt: null });

    t.match(await json(data, 'exporters', 'stop', exporter.id), { state: 'stopped', test: { deliveryId: String } });
    t.match(await json(data, 'exporters', 'show', exporter.id), { name: 'Ours' });
    t.match(await json(data, 'exporters', 'remove', exporter.id), { removed: true });
    t.match(await said(['exporters', 'show', exporter.id, '--data', data]), { code: 1, stderr: /^scanwire: Unknown exporter/ });
    t.equal(await ended(server, 'SIGINT'), 0);
    t.equal(await ended(receiver, 'SIGINT'), 0);
});

/** The data folder of a server that tests share. */
let shared: Promise<string> | undefined;

async function served(): Promise<string> {
    const data = await usedDataOf(t);
    await serve(t, data);
    return data;
}

t.test('shows no path and no query of a URL, but where the URL is asked for', async (t) => {
    shared ??= served();
    const data = await shared;
    const url = 'https://example.com/T0KEN/in?token=hunter2';
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', url);
    for (const command of [['list'], ['show', id]]) {
        const { code, stdout } = await said(['exporters', ...command, '--data', data]);
        t.equal(code, 0);
        t.match(stdout, 'https://example.com/…');
        t.notMatch(stdout, /hunter2|T0KEN/);
    }

    t.match(await said(['exporters', 'show', id, '--show-url', '--data', data]), { code: 0, stdout: url });

    t.match(await json(data, 'exporters', 'show', id, '--show-url'), { url });
    t.match(await json(data, 'exporters', 'show', id), { url: 'https://example.com/…' });
});

t.test('orders what goes to an exporter, and says so', async (t) => {
    shared ??= served();
    const data = await shared;
    const url = ['--url', 'https://example.com/in'];
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', ...url, '--ordered', '--after-exhausted', 'hold');
    const { stdout } = await said(['exporters', 'show', id, '--data', data]);
    t.match(stdout, /^Ordered +by order key; after one that failed for good: hold$/m);
    const event = ['events', 'publish', 'idr_investigation_created', fixture('events/investigation.json'), '--order-key', 'a'];
    t.match(await json(data, ...event), { eventId: String, deliveries: [] });
    t.match(await json(data, 'exporters', 'update', id, '--no-ordered', '--after-exhausted', 'skip'), {
        ordered: false,
        afterExhausted: 'skip',
    });
});

t.test('shows how an exporter fares, in UTC', async (t) => {
    const data = await usedDataOf(t);
    const exporter = await json<{ id: string }>(data, 'exporters', 'create', '--url', 'https://example.com/in');
    const { pool, webhooks } = await openStores(dataFolder(data), { url: undefined }, () => {});
    const past = (minutes: number): Date => new Date(Date.now() - minutes * 60_000);
    const failing = past(30);
    await pool.query(
        `update scanwire.exporters
        set state = 'running', consecutive_failures = 12, failing_since = $1, probe_at = $2, last_outcome_at = $3, last_outcome = $4`,
        [failing, past(-2), past(3), JSON.stringify({ code: 'server_error', detail: 'Answered 500' })],
    );
    await webhooks.deliveries.accept(Array.from({ length: 1_200 }, () => forAll(sampleEvent())));
    await pool.query("update scanwire.deliveries set due_at = due_at - interval '2 hours' where seq <= 7");
    await pool.end();

    const { stdout, stderr } = await said(['exporters', 'show', exporter.id, '--data', data]);
    t.equal(stderr, '');
    const time = (when: Date): string => when.toISOString().slice(0, 19).replace('T', ' ');
    t.match(stdout, /^Breaker {7}open$/m);
    t.match(stdout, `Failures      12 in a row, failing since ${time(failing)} UTC (30 minutes ago)`);
    t.match(stdout, /^Last outcome {2}server_error at .* UTC \(3 minutes ago\): Answered 500$/m);
    t.match(stdout, /^Next probe {4}.* UTC \(in \d+ (minute|seconds)\)$/m);
    t.match(stdout, `at the first failure after ${time(new Date(failing.getTime() + 5 * 86_400_000))} UTC (in 4 days)`);
    t.match(stdout, /^Waiting {7}1,200: 1,193 under 1 min, 7 under 1 day$/m);
    t.match(stdout, /^Oldest {8}.* UTC \(2 hours ago\)$/m);
});
