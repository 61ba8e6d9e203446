import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import { Counter, Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryApiKeys, memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import type { WebhookEvent } from '../../../lib/webhooks/observing/emitted-events.ts';
import { webhookMetrics } from '../../../lib/webhooks/observing/metrics.ts';
import { type MetricsPluginOptions, plugin as metrics } from '../../../plugins/metrics/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../../plugins/webhook-exporter/index.ts';
import { certificate } from '../../support/certificates.ts';
import { countingReceiver } from '../../support/counting-receiver.ts';

const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
const sample = JSON.parse(readFileSync('fixtures/events/investigation.json', 'utf8')) as InvestigationCreated;
const KIND = 'idr_investigation_created';

async function measured(t: Test, options: Partial<MetricsPluginOptions> = {}, stores = memoryWebhooks()) {
    const server = hapiServer({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    await server.register({
        plugin: webhookExporter,
        options: { stores, queue: memoryQueue(), keyRing: ring, egress: { allow: ['127.0.0.0/8'] } },
    });
    await server.register({ plugin: metrics, options: { auth: false, ...options } });
    await server.initialize();
    t.teardown(() => server.stop());
    return server;
}

/** The samples of a scrape, each by its name and labels. */
async function scraped(server: Server, url = '/metrics'): Promise<Readonly<Record<string, number>>> {
    const { payload, headers } = await server.inject(url);
    t.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
    const samples = payload.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return Object.fromEntries(samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

t.test('counts what is published and sent, and how long that took, without naming whose it is', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const server = await measured(t);
    const { exporters, publish, publishAll } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, owner: 'customer-7' });
    await exporters.start(exporter.id);
    await exporters.create({ url: receiver.url });
    const options = { owner: 'customer-7', idempotencyKey: 'one' };
    const { deliveries } = await publish(KIND, sample, options);
    await publish(KIND, sample, options);
    await publishAll([{ kind: KIND, body: sample }]);
    const delivered = async () => (await server.plugins['webhook-exporter'].deliveries.show(deliveries[0] ?? '')).state === 'delivered';
    await until(delivered);
    await until(async () => (await scraped(server))['scanwire_deliveries_ended_total{state="delivered"}'] === 1);

    const samples = await scraped(server);
    t.match(samples, {
        [`scanwire_events_accepted_total{kind="${KIND}"}`]: 2,
        'scanwire_attempts_total{outcome="delivered",collector="default"}': 2,
        scanwire_attempt_duration_seconds_count: 2,
        'scanwire_attempt_duration_seconds_bucket{le="15"}': 2,
        'scanwire_attempt_duration_seconds_bucket{le="20"}': 2,
        'scanwire_delivery_latency_seconds_bucket{le="15"}': 1,
        scanwire_delivery_latency_seconds_count: 1,
        'scanwire_deliveries{state="pending"}': 0,
        'scanwire_exporters{state="closed"}': 1,
        'scanwire_exporters{state="stopped"}': 1,
        scanwire_sending_processes: 1,
        'scanwire_ready{part="process"}': 1,
        'scanwire_ready{part="store"}': 1,
        'scanwire_ready{part="queue"}': 1,
    });
    t.notMatch(JSON.stringify(samples), /customer-7|127\.0\.0\.1|nodejs/);
    t.notMatch(JSON.stringify(samples), exporter.id);
});

t.test('has no label whose values grow with exporters, receivers or owners, of whatever happens', async (t) => {
    const { hear, text } = await webhookMetrics({ source: () => null });
    const certificate = { issuer: 'CN=x', expiresAt: '2030-01-01T00:00:00.000Z' };
    hear({ type: 'event.accepted', eventId: 'v', kind: KIND, owner: 'the owner', deliveries: ['d'] } as never);
    for (const type of ['delivered', 'failed', 'exhausted', 'poisoned']) {
        const ofDelivery = { deliveryId: 'd', eventId: 'v', kind: KIND, exporterId: 'the exporter', collector: 'default', attempt: 1 };
        const more = {
            singleAttempt: false,
            duration: 5,
            latency: 5,
            code: 'delivered',
            status: 204,
            detail: 'of the receiver',
            certificate,
        };
        hear({ type: `delivery.${type}`, ...ofDelivery, ...more } as WebhookEvent);
    }
    for (const type of ['failing', 'stopped', 'recovered']) {
        hear({
            type: `exporter.${type}`,
            exporterId: 'the exporter',
            collector: 'default',
            owner: 'the owner',
            reason: 'its reason',
        } as never);
    }
    const scrape = (await text()).text;
    const labels = [...scrape.matchAll(/[{,](\w+)="([^"]*)"/g)];
    t.match(scrape, /^scanwire_deliveries_ended_total\{state="exhausted"\} 1$/m);
    t.strictSame([...new Set(labels.map(([, name]) => name))].toSorted(), [
        'collector',
        'issuer',
        'kind',
        'le',
        'outcome',
        'part',
        'state',
    ]);
    t.notMatch(scrape, /the exporter|the owner|of the receiver|its reason/);
});

t.test('counts what fails by its outcome and, on request, by exporter', async (t) => {
    const server = await measured(t, { perExporter: true, processMetrics: true, path: '/own' });
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/' });
    await exporters.start(exporter.id);
    await publish(KIND, sample);
    const name = `scanwire_attempts_total{outcome="connect_refused",collector="default",exporter="${exporter.id}"}`;
    await until(async () => (await scraped(server, '/own'))[name] === 2);
    const samples = await scraped(server, '/own');
    t.equal(samples.scanwire_delivery_latency_seconds_count, 0);
    t.equal(samples['scanwire_deliveries_ended_total{state="exhausted"}'], undefined);
    t.ok(samples.process_resident_memory_bytes);
});

t.test('goes on without what the store has to be asked for while that is away', async (t) => {
    const stores = memoryWebhooks();
    let away = false;
    const overview = (limit: number) => (away ? Promise.reject(new Error('away')) : stores.exporters.overview?.(limit));
    const now = () => (away ? Promise.reject(new Error('away')) : stores.deliveries.now());
    const deliveries = { ...stores.deliveries, now };
    const exporters = { ...stores.exporters, overview } as typeof stores.exporters;
    const server = await measured(t, {}, { ...stores, deliveries, exporters });
    const logged: string[][] = [];
    server.events.on('log', ({ tags }) => logged.push(tags));
    away = true;
    const samples = await scraped(server);
    t.match(samples, { 'scanwire_ready{part="store"}': 0, 'scanwire_ready{part="queue"}': 1, scanwire_sending_processes: Number.NaN });
    t.strictSame(
        Object.keys(samples).filter((name) => /^scanwire_(?:deliveries|exporters)\{/.test(name)),
        [],
    );
    t.ok(logged.some((tags) => tags.join() === 'scanwire,metrics,error'));
    away = false;
    t.match(await scraped(server), { 'scanwire_ready{part="store"}': 1, 'scanwire_exporters{state="open"}': 0 });
});

t.test('says when the first of the certificates of receivers ends', async (t) => {
    const end = '2030-01-02T03:04:05.000Z';
    const { key, cert } = await certificate({ to: end });
    const receiver = createServer({ key, cert }, (_, response) => response.writeHead(204).end()).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    t.teardown(() => {
        receiver.closeAllConnections();
        receiver.close();
    });
    const name = 'scanwire_receiver_certificate_expiry_timestamp_seconds';
    const server = await measured(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const certificates = async () => Object.entries(await scraped(server)).filter(([series]) => series.startsWith(name));
    t.strictSame(await certificates(), [], 'none yet');
    const url = `https://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const { exporter } = await exporters.create({ url, trust: 'all' });
    await exporters.start(exporter.id);
    await until(async () => (await certificates()).length > 0);
    const [[series = '', shown] = []] = await certificates();
    t.match(series, /\{issuer="CN=[^"]+"\}$/);
    t.equal(shown, Date.parse(end) / 1000);
});

t.test('forgets the certificate of a receiver that this process has not connected to for a day', async (t) => {
    const DAY = 24 * 60 * 60_000;
    let now = 0;
    const seen = (exporterId: string, expiresAt: string): WebhookEvent =>
        ({
            type: 'delivery.failed',
            code: 'http_5xx',
            deliveryId: 'd',
            exporterId,
            duration: 1,
            certificate: { issuer: 'CN=x', expiresAt },
        }) as unknown as WebhookEvent;
    const gauges = async (perExporter: boolean) => {
        const { hear, text } = await webhookMetrics({ source: () => null, monotonic: () => now, perExporter });
        const shown = async () => [...(await text()).text.matchAll(/^scanwire_receiver_certificate_\w+(.*)$/gm)].map(([, rest]) => rest);
        return { hear, shown };
    };
    const [all, each] = await Promise.all([gauges(false), gauges(true)]);
    t.strictSame([await all.shown(), await each.shown()], [[], []]);
    for (const { hear } of [all, each]) {
        now = 0;
        hear(seen('a', '2027-01-01T00:00:00.000Z'));
        hear(seen('a', '2028-01-01T00:00:00.000Z'));
        now = DAY;
        hear(seen('b', '2029-01-01T00:00:00.000Z'));
    }
    t.strictSame(await all.shown(), ['{issuer="CN=x"} 1830297600'], 'the renewed one of a');
    t.strictSame(await each.shown(), ['{issuer="CN=x",exporter="a"} 1830297600', '{issuer="CN=x",exporter="b"} 1861920000']);
    now = DAY + 1;
    t.strictSame(await all.shown(), ['{issuer="CN=x"} 1861920000']);
    t.strictSame(await each.shown(), ['{issuer="CN=x",exporter="b"} 1861920000']);
});

t.test('tells the issuers of certificates apart, but for those beyond twenty with the fewest receivers', async (t) => {
    const { hear, text } = await webhookMetrics({ source: () => null });
    const present = (exporterId: string, issuer: string, day: number, code = 'delivered'): void => {
        const certificate = { issuer, expiresAt: new Date(Date.UTC(2030, 0, day)).toISOString() };
        hear({ type: 'delivery.failed', deliveryId: 'd', exporterId, duration: 1, code, certificate } as WebhookEvent);
    };
    const endOf = (day: number): string => String(Date.UTC(2030, 0, day) / 1000);
    for (let index = 0; index < 25; index += 1) {
        present(`alone ${index}`, `CN="a"\\${index}`, 1 + index);
    }
    present('e1', 'CN=public', 31);
    present('e2', 'CN=public', 30);
    present('refused', 'CN=claimed', 1, 'tls_self_signed');
    const shown = [...(await text()).text.matchAll(/^scanwire_receiver_certificate_\w+\{issuer="(.*)"\} (\d+)$/gm)];
    t.strictSame(
        shown.map(([, issuer, end]) => [issuer, end]),
        [
            ['CN=public', endOf(30)],
            ...Array.from({ length: 19 }, (_, index) => [`CN=\\"a\\"\\\\${index}`, endOf(1 + index)]),
            ['other', endOf(20)],
        ],
    );
});

t.test('docs/metrics.md has every metric', async (t) => {
    const server = await measured(t);
    const { payload } = await server.inject('/metrics');
    const shown = [...payload.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    const page = readFileSync('docs/metrics.md', 'utf8');
    const documented = [...page.matchAll(/^\| `(scanwire_\w+)` +\| (\w+) /gm)].map(([, name, type]) => `${name} ${type}`);
    t.strictSame(documented.toSorted(), shown.toSorted());
});

t.test('docs/grafana-dashboard.json shows every metric, and no other', async (t) => {
    const server = await measured(t);
    const { payload } = await server.inject('/metrics');
    const shown = [...payload.matchAll(/^# TYPE (\w+) \w+$/gm)].map(([, name]) => name);
    const { panels } = JSON.parse(readFileSync('docs/grafana-dashboard.json', 'utf8')) as { panels: { targets: { expr: string }[] }[] };
    const asked = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(/scanwire_\w+/g) ?? []));
    const names = new Set(asked.map((name) => name.replace(/_bucket$/, '')));
    t.strictSame([...names].toSorted(), shown.toSorted());
});

t.test('shares the registry of an application', async (t) => {
    const registry = new Registry();
    new Counter({ name: 'own_total', help: 'x', registers: [registry] }).inc(3);
    const server = await measured(t, { registry });
    t.match(await scraped(server), { own_total: 3, 'scanwire_ready{part="store"}': 1 });
});

t.test('is shown to whom the strategy lets in and, of keys, to those with deliveries:read', async (t) => {
    const server = await measured(t, { auth: 'token' });
    const { create } = server.plugins['token-auth'];
    const status = async (token: string) => (await server.inject({ url: '/metrics', headers: { token } })).statusCode;
    t.equal(await status('none'), 403);
    t.equal(await status((await create('other', { scopes: ['inventory:read', 'admin', 'events:publish'] })).key), 403);
    t.equal(await status((await create('some', { scopes: ['deliveries:read'], workspaces: [1] })).key), 403);
    t.equal(await status((await create('scraper', { scopes: ['deliveries:read'] })).key), 200);
});

t.test('measures the instance that it names, and no other', async (t) => {
    const server = hapiServer({ debug: false });
    const exporterOptions = () => ({ stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring, collectors: [] });
    await server.register([
        { plugin: webhookExporter, options: exporterOptions() },
        { plugin: webhookExporter, options: { ...exporterOptions(), instance: 'b' } },
        { plugin: metrics, options: { auth: false } },
        { plugin: metrics, options: { auth: false, of: 'b', instance: 'b', path: '/b' } },
    ]);
    await server.initialize();
    t.teardown(() => server.stop());
    await server.plugins['webhook-exporter'].of('b').publish(KIND, sample);
    const name = `scanwire_events_accepted_total{kind="${KIND}"}`;
    t.equal((await scraped(server, '/b'))[name], 1);
    t.equal((await scraped(server))[name], undefined);
});

t.test('refuses options that cannot work', async (t) => {
    const refused = async (options: object, match: object) => {
        const server = hapiServer();
        const exporter = { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring };
        await server.register({ plugin: webhookExporter, options: exporter });
        await t.rejects(server.register({ plugin: metrics, options: options as MetricsPluginOptions }), {
            code: 'MISCONFIGURED',
            ...match,
        });
    };
    await refused({}, { field: 'auth' });
    await refused({ auth: 'none' }, { field: 'auth' });
    await refused({ auth: false, path: 'metrics' }, { field: 'path' });
    await refused({ auth: false, registry: {} }, { field: 'registry' });
    const alone = hapiServer().register({ plugin: metrics, options: { auth: false } });
    await t.rejects(alone, { code: 'MISCONFIGURED', message: /webhook-exporter/ });
});
