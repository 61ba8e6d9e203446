import { server as hapiServer } from '@hapi/hapi';
import { InvalidArgumentError } from 'commander';
import t from 'tap';
import { metricsAddress, startMetrics } from '../../cli/metrics-server.ts';

t.test('reads an address and a port', (t) => {
    t.strictSame(metricsAddress('9464'), { host: '127.0.0.1', port: 9464 });
    t.strictSame(metricsAddress('0.0.0.0:80'), { host: '0.0.0.0', port: 80 });
    t.strictSame(metricsAddress('[::1]:0'), { host: '::1', port: 0 });
    for (const text of ['', 'x', '65536', ':80', '127.0.0.1:', '[]:1', '1e3']) {
        t.throws(() => metricsAddress(text), InvalidArgumentError, text);
    }
    t.end();
});

t.test('serves health and metrics, also while there is nothing to measure', async (t) => {
    let ready = false;
    const counted = { deliveries: { pending: 2, queued: 0, sending: 0 }, sessions: 1 };
    const exporters = { stopped: 0, closed: 1, open: 0, paused: 0, recovering: 0 };
    const source = { readiness: async () => ({ ready: true, reasons: [] }), overview: async () => ({ ...counted, exporters }) };
    const server = await startMetrics(
        { host: '127.0.0.1', port: 0 },
        { source: () => (ready ? source : null), onError: (error) => t.fail(error.message) },
    );
    t.teardown(() => server.stop());
    const get = async (path: string) => {
        const response = await fetch(`${server.uri}${path}`);
        return { status: response.status, text: await response.text() };
    };
    t.strictSame(await get('/health/live'), { status: 200, text: '{"status":"ok"}' });
    t.strictSame(await get('/health/ready'), { status: 503, text: '{"status":"unavailable"}' });
    const nowhere = await fetch(`${server.uri}/nowhere`);
    t.strictSame([nowhere.status, nowhere.headers.get('x-content-type-options')], [404, 'nosniff']);
    t.match(await get('/metrics'), { status: 200, text: /scanwire_ready\{part="process"\} 0\n/ });
    ready = true;
    t.strictSame(await get('/health/ready'), { status: 200, text: '{"status":"ok"}' });
    server.hear({ type: 'event.accepted', eventId: 'e', kind: 'scan_finished', deliveries: 1, inTransaction: false });
    const { text } = await get('/metrics');
    t.match(text, /scanwire_deliveries\{state="pending"\} 2\n/);
    t.match(text, /scanwire_events_accepted_total\{kind="scan_finished"\} 1\n/);
    t.match(text, /process_resident_memory_bytes \d/);
    t.equal((await get('/')).status, 404);
});

t.test('says that it cannot listen', async (t) => {
    const other = hapiServer({ host: '127.0.0.1', port: 0 });
    await other.start();
    t.teardown(() => other.stop());
    await t.rejects(
        startMetrics(
            { host: '127.0.0.1', port: Number(other.info.port) },
            { source: () => null, onError: (error) => t.fail(error.message) },
        ),
        {
            code: 'CONFLICT',
            message: /--metrics/,
        },
    );
});
