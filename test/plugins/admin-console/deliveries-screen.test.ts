import { readFileSync } from 'node:fs';
import type { Server } from '@hapi/hapi';
import { decodeHTML } from 'entities';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import { indented } from '../../../plugins/admin-console/screens/delivery.ts';
import { scanwire } from '../../support/scanwire.ts';
import { fixture } from '../../support/served.ts';
import { admin, answering, host, register, systemOf } from './host.ts';
import { fieldsOf, Visitor } from './visitor.ts';

const KIND = 'idr_investigation_created';
const BODY = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')) as InvestigationCreated;

/** A host with an exporter that was started, which has sent a test. */
async function visited(t: Test, name = 'alerts') {
    const server = await host();
    await register(server, { system: systemOf(server), screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const receiver = await answering(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, name });
    await exporters.start(exporter.id);
    return { server, visitor: new Visitor(server), receiver, exporterId: exporter.id };
}

async function published(server: Server): Promise<string> {
    const { deliveries, publish } = server.plugins['webhook-exporter'];
    const {
        deliveries: [id = ''],
    } = await publish(KIND, BODY);
    await until(async () => (await deliveries.show(id)).history.some(({ outcome }) => outcome !== null));
    return id;
}

t.test('lists deliveries, filters them and says how many there are', async (t) => {
    const { server, visitor, exporterId } = await visited(t);
    const id = await published(server);
    const all = await visitor.get('/admin/deliveries');
    t.match(all.html, /2 deliveries/);
    t.match(all.html, `/admin/deliveries/${id}"`);
    t.match(
        all.html,
        />test<\/a><\/th>\s*<td[^>]*><time[^>]*>[^<]*<\/time><\/td><td[^>]*><a href="[^"]*">alerts<\/a><\/td>\s*<td[^>]*>delivered<\/td><td[^>]*>1<\/td>\s*<td[^>]*><a href="[^"]*"><code class="arrived">delivered<\/code>/,
    );

    const cases: readonly [string, RegExp][] = [
        [`kind=${KIND}`, /1 delivery/],
        [`exporterId=${exporterId}&state=delivered`, /2 deliveries/],
        ['state=held', /0 deliveries/],
        ['outcome=dns_failed', /0 deliveries/],
        ['since=2001-01-01T00:00&until=2001-01-02T00:00', /0 deliveries/],
        ['since=2001-01-01T00:00', /2 deliveries/],
    ];
    for (const [query, said] of cases) {
        t.match((await visitor.get(`/admin/deliveries?${query}`)).html, said, query);
    }
    t.match((await visitor.get('/admin/deliveries?state=held')).html, /value="held" selected/, 'what was asked for is kept');
    const refused = await visitor.get('/admin/deliveries?since=yesterday&state=lost');
    t.equal(refused.status, 400);
    t.match(refused.html, /role="alert" class="fault">[^<]*must be/);
});

t.test('filters by all that the command line does', async (t) => {
    const { stdout } = await scanwire(['deliveries', 'list', '--help']);
    const options = [...stdout.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name = '']) => name);
    const general = ['data', 'json', 'help', 'server', 'key-ring', 'after', 'limit', 'count'];
    const names: Readonly<Record<string, string>> = { exporter: 'exporterId', event: 'eventId' };
    const expected = options.filter((name) => !general.includes(name)).map((name) => names[name] ?? name);
    const { visitor } = await visited(t);
    const { html } = await visitor.get('/admin/deliveries');
    const [, form = ''] = /<form method="get"([\s\S]*?)<\/form>/.exec(html) ?? [];
    const fields = [...form.matchAll(/<(?:select name|input name)="(\w+)"/g)].map(([, name = '']) => name);
    t.ok(expected.length >= 7, stdout);
    t.same(fields.toSorted(), expected.toSorted());
});

t.test('draws what became of deliveries, and has its numbers in a table', async (t) => {
    const { server, visitor, receiver, exporterId } = await visited(t);
    const empty = await visitor.get('/admin/deliveries/activity?exporterId=nobody');
    t.match(empty.html, /Deliveries: 0 in all/);
    t.match(empty.html, /Nothing was delivered/);
    await published(server);
    receiver.status = 500;
    await published(server);
    const { html, status } = await visitor.get(`/admin/deliveries/activity?exporterId=${exporterId}`);
    t.equal(
        html.match(/<div class="axis" aria-hidden="true"><span>\d\d:\d\d<\/span><span>\d\d:\d\d UTC</g)?.length,
        4,
        'from when to when',
    );
    t.equal(status, 200);
    t.match(html, /aria-label="Deliveries: 3 in all, the most in a bar \d"/);
    t.equal(html.match(/<section /g)?.length, 2);
    t.match(html, /<rect class="failed" x="\d+" y="[\d.]+" width="8" height="[\d.]+">/);
    t.match(html, /From acceptance to delivery: the longest [\d,]+ m?s/);
    t.match(html, /<th scope="row"><time datetime="[^"]+">\d\d:00<\/time><\/th><td>3<\/td><td>2<\/td><td>1<\/td><td>\d+ ms<\/td>/);
    t.notMatch(html, /style=/);
});

t.test('says of a bar of which not all was looked at that there may be more, and long times in seconds', async (t) => {
    const server = await host();
    const webhooks = server.plugins['webhook-exporter'];
    const latency = { p50: 9_999, p95: 65_000 };
    const slice = { since: new Date(0), until: new Date(1), deliveries: 1_000, more: true, delivered: 1_000, failed: 0, latency };
    let refusal: ScanwireError | null = null;
    const activity = async () => {
        if (refusal !== null) {
            throw refusal;
        }
        return { at: new Date(), slices: [slice, { ...slice, delivered: 0, latency: null }] };
    };
    await register(server, {
        system: { webhooks: { ...webhooks, deliveries: { ...webhooks.deliveries, activity } } },
        screens: {},
    });
    const visitor = new Visitor(server);
    const { html } = await visitor.get('/admin/deliveries/activity');
    t.match(html, /Deliveries: 2,000\+ in all, the most in a bar 1,000\+/);
    t.match(html, /<td>1,000\+<\/td><td>1,000<\/td><td>0<\/td><td>9,999 ms<\/td><td>65 s<\/td>/);
    t.match(html, /<td>none<\/td><td>none<\/td>/);
    t.match(html, /the newest 1,000 were looked at/);

    refusal = new ScanwireError('MISCONFIGURED', 'Cannot');
    t.match((await visitor.get('/admin/deliveries/activity')).html, /This store does not count/);
    refusal = new ScanwireError('UNAVAILABLE', 'It is away');
    t.equal((await visitor.get('/admin/deliveries/activity')).status, 503);
});

t.test('goes on with older deliveries', async (t) => {
    const { server, visitor } = await visited(t);
    for (let times = 0; times < 51; times += 1) {
        await server.plugins['webhook-exporter'].publish(KIND, BODY);
    }
    const first = await visitor.get(`/admin/deliveries?kind=${KIND}`);
    t.match(first.html, /51 deliveries/);
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.html) ?? [];
    const second = await visitor.get(next.replaceAll('&amp;', '&'));
    t.equal(second.html.match(/<th scope="row">/g)?.length, 1);
    t.notMatch(second.html, /rel="next"/);
});

t.test('shows each attempt with its outcome and its times, and sends a delivery once more', async (t) => {
    const { server, visitor, receiver } = await visited(t);
    const id = await published(server);
    const page = await visitor.get(`/admin/deliveries/${id}`);
    t.match(page.html, /<dt>State<\/dt><dd>delivered/);
    t.match(page.html, /<code class="arrived">delivered<\/code>/);
    t.match(page.html, /<svg class="bar"[^>]* aria-label="[^"]*In all \d+ ms">/);
    t.match(page.html, /127\.0\.0\.1/);

    const before = receiver.received;
    const again = await visitor.send(page, `/admin/deliveries/${id}/replay`);
    t.match(again.html, /It is resent/);
    await until(() => receiver.received > before);
    t.equal((await visitor.get(`/admin/deliveries/${id}/replay`)).path, `/admin/deliveries/${id}`, 'loading it again shows the delivery');
    t.equal((await visitor.get('/admin/deliveries/nothing')).status, 404);
});

t.test('discards a delivery that waits', async (t) => {
    const { server, visitor, exporterId } = await visited(t);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    await exporters.pause(exporterId);
    const [id = ''] = (await publish(KIND, BODY)).deliveries;
    const page = await visitor.get(`/admin/deliveries/${id}`);
    const after = await visitor.send(page, `/admin/deliveries/${id}/discard`);
    t.match(after.html, /It was discarded/);
    t.match(after.html, /<dt>State<\/dt><dd>cancelled/);
    t.notMatch(after.html, /Discard it|Resend it/, 'there is nothing left to do with it');
    t.equal((await visitor.get(`/admin/deliveries/${id}/discard`)).path, `/admin/deliveries/${id}`, 'loading it again shows the delivery');
});

t.test('offers to discard nothing where the store cannot', async (t) => {
    const server = await host();
    const webhooks = server.plugins['webhook-exporter'];
    const deliveries = { ...webhooks.deliveries, discards: false };
    await register(server, { system: { webhooks: { ...webhooks, deliveries } }, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporter } = await webhooks.exporters.create({ url: (await answering(t)).url });
    await webhooks.exporters.start(exporter.id);
    await webhooks.exporters.pause(exporter.id);
    const [id = ''] = (await webhooks.publish(KIND, BODY)).deliveries;
    const visitor = new Visitor(server);
    const { html } = await visitor.get(`/admin/deliveries/${id}`);
    t.match(html, /<dt>State<\/dt><dd>waiting/);
    t.notMatch(html, /Discard it/);
    t.equal((await server.inject({ method: 'POST', url: `/admin-console/deliveries/${id}/discard`, headers: admin })).statusCode, 404);
});

t.test('explains what several attempts came to once, and what to do', async (t) => {
    const server = await host();
    const webhooks = server.plugins['webhook-exporter'];
    const show: typeof webhooks.deliveries.show = async (id) => {
        const delivery = await webhooks.deliveries.show(id);
        return { ...delivery, history: Array.from({ length: 3 }, () => delivery.history).flat() };
    };
    await register(server, { system: { webhooks: { ...webhooks, deliveries: { ...webhooks.deliveries, show } } }, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const receiver = await answering(t);
    receiver.status = 500;
    receiver.body = 'out of order';
    const { exporter } = await webhooks.exporters.create({ url: receiver.url });
    const { test } = await webhooks.exporters.start(exporter.id);
    const { html } = await new Visitor(server).get(`/admin/deliveries/${test.deliveryId}`);
    t.equal(html.match(/<code class="failed">server_error<\/code> Answered 500/g)?.length, 4, 'above, and of each attempt');
    t.equal(html.match(/<p class="words"><small>The receiver failed, with a 5xx status\. Repair the receiver/g)?.length, 1);
    t.equal(html.match(/<div>The receiver answered:<\/div><pre [^>]*><code>out of order<\/code>/g)?.length, 1);
});

t.test('shows what a delivery sends, but no secret of it, and that its body was erased', async (t) => {
    const { server, visitor, exporterId } = await visited(t);
    const { exporters, publish, events } = server.plugins['webhook-exporter'];
    await exporters.update(exporterId, { headers: [['X-Key', 'hidden-value']], basic: { username: 'ada', password: 'hidden-word' } });
    const body = { ...BODY, title: '</code><script>alert(1)</script>' };
    const [id = ''] = (await publish(KIND, body)).deliveries;
    await until(async () => (await server.plugins['webhook-exporter'].deliveries.show(id)).finishedAt !== null);

    const { html } = await visitor.get(`/admin/deliveries/${id}`);
    const [, shown = ''] = /<pre[^>]*><code>([\s\S]*?)<\/code>/.exec(html) ?? [];
    t.same(JSON.parse(decodeHTML(shown)).title, body.title, 'as it is sent');
    t.match(shown, /^\{\n {2}&#34;/, 'with line breaks');
    t.match(html, /[\d,]+ bytes\./);
    t.match(html, '<dt>X-Key</dt><dd><code>***</code></dd>');
    t.match(html, '<dt>Authorization</dt><dd><code>***</code></dd>');
    t.notMatch(html, /hidden-|YWRhOmhpZGRlbi|<script>/);
    t.match(html, /<small>Status<\/small> 204/);

    await exporters.remove(exporterId);
    t.match((await visitor.get(`/admin/deliveries/${id}`)).html, /The exporter was removed, and its headers with it/);
    await events.erase((await server.plugins['webhook-exporter'].deliveries.show(id)).eventId);
    const erased = (await visitor.get(`/admin/deliveries/${id}`)).html;
    t.match(erased, /The body was erased <time/);
    t.notMatch(erased, /<pre/);
});

t.test('shows why nothing is sent, and a long body in part', async (t) => {
    const { server, visitor, exporterId } = await visited(t);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const [long = ''] = (await publish(KIND, { ...BODY, title: 'x'.repeat(60_000) })).deliveries;
    const page = (await visitor.get(`/admin/deliveries/${long}`)).html;
    t.match(page, /Only the first 50,000 characters are shown/);
    t.ok(page.length < 60_000);

    const template = { texts: Array.from({ length: 20 }, () => '{{ body.title }}') };
    await exporters.update(exporterId, { format: 'template', template });
    const [failing = ''] = (await publish(KIND, { ...BODY, title: 'x'.repeat(60_000) })).deliveries;
    await until(async () => (await server.plugins['webhook-exporter'].deliveries.show(failing)).finishedAt !== null);
    t.match((await visitor.get(`/admin/deliveries/${failing}`)).html, /role="alert" class="fault">[^<]*Nothing is sent/);
});

t.test('lays out JSON without changing a number or a key', async (t) => {
    const text = '{"a":1e400,"a":12345678901234567890,"b":[{},[],[1,"x\\",{y\\\\"]],"c":{"d":null}}';
    const laid = indented(text, 9_999);
    t.equal(laid.replaceAll(/\n */g, '').replaceAll(': ', ':'), text);
    t.match(laid, '  "b": [\n    {},\n    [],');
    t.equal(indented('no { json', 9_999), 'no { json');
    t.ok(indented('['.repeat(2_000) + ']'.repeat(2_000), 9_999).length < 11_000);
});

t.test('counts what was sent in vain, replays it and ends a replay', async (t) => {
    const { server, visitor, receiver, exporterId } = await visited(t);
    receiver.status = 500;
    await published(server);
    const page = await visitor.get('/admin/deliveries/replays');
    t.match(page.html, /Nothing was resent yet/);
    t.notMatch(page.html, /Resend them/, 'first they are counted');
    t.match(page.html, /Next: count them<\/button> <small id="count-first">Nothing is sent yet/);

    const counted = await visitor.send(page, '/admin/deliveries/replays', { step: 'count', exporterId, rate: '1' });
    t.equal(counted.status, 200);
    t.match(counted.html, /1 delivery would be resent/);
    t.notMatch(counted.html, /Nothing was resent yet/, 'it would be read as what the count has found');
    t.notMatch(counted.html, /<select|Next: count them/, 'nothing but what was counted can be confirmed');
    const [, otherwise = ''] = /href="([^"]+)">Choose otherwise/.exec(counted.html) ?? [];
    const again = new Map(fieldsOf((await visitor.get(decodeHTML(otherwise))).html, '/admin/deliveries/replays'));
    t.match([again.get('exporterId'), again.get('rate')], [exporterId, '1'], 'what was chosen is kept');
    const begun = await visitor.send(counted, '/admin/deliveries/replays', { step: 'begin' });
    t.match(begun.html, /Resending has begun/);
    t.match(begun.html, /<progress value="\d" max="1"/);

    const [replay] = await server.plugins['webhook-exporter'].deliveries.replays.list();
    await until(async () => (await server.plugins['webhook-exporter'].deliveries.replays.list()).every(({ state }) => state !== 'running'));
    t.notMatch((await visitor.get('/admin/deliveries/replays')).html, 'hx-get=');
    if (replay?.state === 'running') {
        const ended = await visitor.send(begun, `/admin/deliveries/replays/${replay.id}/cancel`);
        t.match(ended.html, /Resending was cancelled/);
    }
    t.equal((await visitor.get(`/admin/deliveries/replays/${replay?.id}/cancel`)).path, '/admin/deliveries/replays');

    const held = await visitor.send(page, '/admin/deliveries/replays', { step: 'count', what: 'held', exporterId });
    t.match(held.html, /0 deliveries would be resent/);
    t.match(begun.html, `<a href="/admin/deliveries?exporterId=${exporterId}">Deliveries of alerts</a>`);
    const refused = await visitor.send(page, '/admin/deliveries/replays', { step: 'count', exporterId, rate: '0' });
    t.equal(refused.status, 400);
    t.match(refused.html, /rate/);
    const never = await visitor.send(page, '/admin/deliveries/replays', { step: 'count', exporterId, failedSince: 'never' });
    t.equal(never.status, 400);
    t.match(never.html, /class="fault">[^<]*failedSince/);
});

t.test('shows nothing as markup that comes from elsewhere', async (t) => {
    const { server, visitor } = await visited(t, '<script>alert(1)</script>');
    const id = await published(server);
    const hostile = encodeURIComponent('"><img src=x onerror=alert(1)>');
    for (const path of [
        `/${id}`,
        '',
        `?kind=${hostile}&eventId=${hostile}&since=${hostile}`,
        '/replays',
        `/replays?exporterId=${hostile}`,
        `/${hostile}`,
    ]) {
        const { html } = await visitor.get(`/admin/deliveries${path}`);
        t.notMatch(html, /<script>|<img/, path);
    }
    t.match((await visitor.get(`/admin/deliveries/${id}`)).html, '&lt;script&gt;');
});

t.test('shows the rest of a delivery whose message cannot be shown, and nothing of one that cannot be read', async (t) => {
    const server = await host();
    const system = systemOf(server);
    let refusal = new ScanwireError('UNSEALABLE', 'The key k is not in the key ring');
    const webhooks = server.plugins['webhook-exporter'];
    const deliveries = { ...webhooks.deliveries, message: () => Promise.reject(refusal) };
    await register(server, { system: { ...system, webhooks: { ...webhooks, deliveries } }, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporter } = await webhooks.exporters.create({ url: (await answering(t)).url });
    await webhooks.exporters.start(exporter.id);
    const id = await published(server);
    const visitor = new Visitor(server);
    const { html } = await visitor.get(`/admin/deliveries/${id}`);
    t.match(html, /role="alert" class="fault">The key k is not in the key ring</);
    t.match(html, /<code class="arrived">delivered<\/code>/);

    refusal = new ScanwireError('UNAVAILABLE', 'The database cannot be reached');
    t.equal((await visitor.get(`/admin/deliveries/${id}`)).status, 503);
});

t.test('counts only what is more than a page', async (t) => {
    const server = await host();
    const system = systemOf(server);
    const webhooks = system.webhooks as NonNullable<typeof system.webhooks>;
    const { exporters, deliveries } = webhooks;
    let counts = 0;
    const count: typeof deliveries.count = (filter) => {
        counts += 1;
        return deliveries.count(filter);
    };
    await register(server, { system: { webhooks: { ...webhooks, deliveries: { ...deliveries, count } } }, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporter } = await exporters.create({ url: (await answering(t)).url });
    await exporters.start(exporter.id);
    const visitor = new Visitor(server);
    t.match((await visitor.get('/admin/deliveries')).html, '1 delivery');
    t.equal(counts, 0);
    for (let more = 0; more < 50; more += 1) {
        await webhooks.publish(KIND, BODY);
    }
    const page = await visitor.get('/admin/deliveries');
    t.match(page.html, '51 deliveries');
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(page.html) ?? [];
    t.match((await visitor.get(decodeHTML(next))).html, '51 deliveries', 'of an older page too');
    t.equal(counts, 2);
});
