import t from 'tap';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { dataOf, fixture, json } from '../support/served.ts';

t.test('delivers to a receiver that verifies, and opens loopback to nothing else', async (t) => {
    const data = dataOf(t);
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

    const refused = await scanwire(['exporters', 'create', '--url', 'http://127.0.0.1:9/', '--data', data]);
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
    await json(data, 'deliveries', 'replay', delivery);
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });

    const wrong = await scanwire([
        'exporters',
        'update',
        exporter.id,
        '--secret',
        'another secret',
        '--no-header',
        '--data',
        data,
        '--json',
    ]);
    t.match(JSON.parse(wrong.stdout), { headerNames: [], test: { attempt: { code: 'client_error', status: 401 } } });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: false, forms: [], reason: String });
    t.match(await scanwire(['exporters', 'test', exporter.id, '--data', data]), { code: 1, stdout: /^Test failed: client_error 401/ });

    t.match(await json(data, 'exporters', 'stop', exporter.id), { state: 'stopped', test: { deliveryId: String } });
    t.match(await json(data, 'exporters', 'show', exporter.id), { name: 'Ours' });
    t.match(await json(data, 'exporters', 'remove', exporter.id), { removed: true });
    t.match(await scanwire(['exporters', 'show', exporter.id, '--data', data]), { code: 1, stderr: /^scanwire: Unknown exporter/ });
    t.equal(await ended(server, 'SIGINT'), 0);
    t.equal(await ended(receiver, 'SIGINT'), 0);
});

t.test('shows no value of the query of a URL, but with --json', async (t) => {
    const data = dataOf(t);
    const url = 'https://example.com/in?token=hunter2';
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', url);
    for (const command of [['list'], ['show', id]]) {
        const { code, stdout } = await scanwire(['exporters', ...command, '--data', data]);
        t.equal(code, 0);
        t.match(stdout, 'https://example.com/in?token=***');
        t.notMatch(stdout, 'hunter2');
    }

    t.match(await json(data, 'exporters', 'show', id), { url });
});
