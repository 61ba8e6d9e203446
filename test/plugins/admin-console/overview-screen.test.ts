import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { Diagnosis } from '../../../lib/webhooks/observing/doctor.ts';
import type { System } from '../../../plugins/admin-console/index.ts';
import { host, investigation, receiver, register, systemOf, VALID_LICENSE } from './host.ts';
import { Visitor } from './visitor.ts';

async function visited(
    t: Test,
    change: (system: System) => object = (system) => system,
): Promise<{ server: Server; visitor: Visitor; system: System }> {
    const server = await host();
    const system = systemOf(server);
    await register(server, { system: change(system), screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    return { server, visitor: new Visitor(server), system };
}

const overview = async (visitor: Visitor): Promise<string> => (await visitor.get('/admin/overview')).html;

t.test('shows the first steps until they are done', async (t) => {
    const { server, visitor, system } = await visited(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const first = await overview(visitor);
    t.match(first, /First steps[\s\S]*Create an API Key[\s\S]*Add Data Exporter/);
    t.match(first, /Wrong:<\/strong> There is no valid licence/);
    t.match(first, /scanwire \d\S* on Node\.js \d/);
    t.match(first, '<code>scanwire license install FILE</code>');
    t.match(first, /What runs[\s\S]*The memory of this process answers[\s\S]*The queue in this process has taken what it was given last/);
    t.match(first, /Collectors that are sent for: default \(processes: 1, attempts at once: \d+\)/);

    await server.plugins['token-auth'].create('ci');
    await system.license.install(VALID_LICENSE);
    const { exporter } = await exporters.create({ url: await receiver(t), name: '<b>alerts</b>' });
    const second = await overview(visitor);
    t.notMatch(second, /Create an API Key|Add Data Exporter<|licence/);
    t.match(second, `<a href="/admin/exporters/${exporter.id}">Start an exporter`);
    t.notMatch(second, /Publish a sample event/, 'nobody would get it');
    t.match(second, /A button for it appears here once an exporter runs\.[\s\S]*<small>The application does it/);

    await exporters.start(exporter.id);
    const third = await overview(visitor);
    t.notMatch(third, /Start an exporter|<b>|A button for it appears/);
    t.match(third, /Publish a sample event<\/button>[\s\S]*<small>or let the application do it/);
    t.match(
        third,
        /First steps[\s\S]*<li>Publish a first event[\s\S]*<code>scanwire events publish idr_investigation_created FILE.json<\/code>/,
    );
    const { html: sent } = await visitor.send(await visitor.get('/admin/overview'), '/admin/overview/sample');
    t.match(sent, 'role="status">The sample event was published.');
    t.match(sent, /<h1>Deliveries<\/h1>[\s\S]*>idr_investigation_created<\/a>/);
    t.equal((await visitor.get('/admin/overview/sample')).path, '/admin/overview');
    const fourth = await overview(visitor);
    t.notMatch(fourth, /First steps/);
    t.match(fourth, /<h2 id="attention">What needs attention<\/h2>\s*<p>Nothing\./);
});

t.test('says on each page what the next of the first steps is, but where it is done', async (t) => {
    const { server, visitor } = await visited(t);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const next = async (path: string): Promise<string | null> => nextOf((await visitor.get(path)).html);
    t.equal(await next('/admin/exporters'), '/admin/keys: Create an API Key');
    t.equal(await next('/admin/keys'), null, 'here it is done');
    t.equal(await next('/admin/overview'), null, 'here are all of them');
    const made = await visitor.send(await visitor.get('/admin/keys'), '/admin/keys', { name: 'ci' });
    t.equal(nextOf(made.html), '/admin/exporters/new: Add Data Exporter');
    t.equal(await next('/admin/exporters/new'), null);
    const refused = await visitor.send(await visitor.get('/admin/exporters/new'), '/admin/exporters', { url: 'ftp://example.com' });
    t.equal(refused.status, 400);
    t.equal(nextOf(refused.html), null, 'nothing leads away from what was typed');
    const { exporter } = await exporters.create({ url: await receiver(t) });
    t.equal(await next('/admin/deliveries'), `/admin/exporters/${exporter.id}: Start an exporter, which sends a test event`);
    await exporters.start(exporter.id);
    t.equal(await next(`/admin/exporters/${exporter.id}`), '/admin/overview: Publish a first event');
    await publish('idr_investigation_created', investigation);
    t.equal(await next('/admin/deliveries'), null);
    await exporters.remove(exporter.id);
    t.equal(await next('/admin/deliveries'), null, 'nobody is new here any more');
});

t.test('shows a page also where nobody can say what the next step is', async (t) => {
    const logged: unknown[] = [];
    const { server, visitor } = await visited(t, (system) => {
        const { deliveries } = system.webhooks;
        const list = async () => {
            throw new Error('away');
        };
        return { ...system, webhooks: { ...system.webhooks, deliveries: { ...deliveries, list } } };
    });
    server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push(error));
    const { status, html } = await visitor.get('/admin/keys');
    t.equal(status, 200);
    t.equal(nextOf(html), null);
    t.match(logged, [/away/]);
});

/** Where a page says that the next step is, and how it calls it. */
function nextOf(html: string): string | null {
    const [, to, text] = /Next step:<\/strong> <a href="([^"]*)">([^<]*)</.exec(html) ?? [];
    return to === undefined ? null : `${to}: ${text}`;
}

t.test('names exporters that fail or were stopped, the stopped ones first', async (t) => {
    const { server, visitor } = await visited(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const made = await Promise.all(
        ['<i>failing</i>', '<i>stopped</i>'].map(async (name) => (await exporters.create({ url: await receiver(t), name })).exporter),
    );
    const states = [{ consecutiveFailures: 3 }, { state: 'stopped', stopReason: 'gone', consecutiveFailures: 3 }];
    const { summaries } = exporters;
    Object.assign(exporters, {
        summaries: async () =>
            (await summaries()).map((exporter) => ({ ...exporter, ...states[made.findIndex(({ id }) => id === exporter.id)] })),
    });
    const html = await overview(visitor);
    t.match(html, /Wrong:<\/strong> Stopped by its receiver \(gone\): <a href="[^"]*">&lt;i&gt;stopped/);
    t.match(html, /Warning:<\/strong> 3 failures in a row: <a href="[^"]*">&lt;i&gt;failing/);
    t.ok(html.indexOf('stopped&lt;') < html.indexOf('failing&lt;'), 'the most urgent first');
    t.notMatch(html, '<i>');

    const [failing, halted] = made.map(({ id }) => id);
    const page = await visitor.get('/admin/overview');
    t.match((await visitor.send(page, `/admin/exporters/${halted}/start`)).html, 'The exporter runs');
    t.match((await visitor.send(page, `/admin/exporters/${failing}/test`)).html, 'A test event was sent');
});

t.test('says of an exporter whose test has failed that it has, until its receiver has taken something', async (t) => {
    const { server, visitor, system } = await visited(t);
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    await system.license.install(VALID_LICENSE);
    const state = { status: 401 };
    const { exporter } = await exporters.create({ url: await receiver(t, () => state.status), name: '<b>alerts</b>' });
    await exporters.test(exporter.id);
    t.notMatch(await overview(visitor), 'Its last test', 'it does not run');
    await exporters.start(exporter.id);
    const failed = await overview(visitor);
    t.match(
        failed,
        /Warning:<\/strong> Its last test came to client_error: <a href="[^"]*">&lt;b&gt;alerts[\s\S]*Correct the URL, the auth[\s\S]*\/test"/,
    );
    t.notMatch(failed, '<p>Nothing.');

    state.status = 204;
    const [id = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    await until(
        async () => (await deliveries.show(id)).lastCode === 'delivered' && (await exporters.show(exporter.id)).health.lastOutcome !== null,
    );
    await until(async () => /<p>Nothing\./.test(await overview(visitor)));
    state.status = 500;
    await exporters.test(exporter.id);
    t.match(await overview(visitor), 'Its last test came to server_error');
    state.status = 204;
    await exporters.test(exporter.id);
    t.match(await overview(visitor), '<p>Nothing.');
});

t.test('publishes a sample event again, which the trail tells of', async (t) => {
    const { server, visitor, system } = await visited(t);
    const { exporters, deliveries } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t) });
    t.notMatch(await overview(visitor), '/overview/sample', 'nobody would get it');
    await exporters.start(exporter.id);
    for (let times = 1; times <= 3; times += 1) {
        const page = await visitor.get('/admin/overview');
        t.equal(page.html.match(/action="\/admin\/overview\/sample"/g)?.length, 1);
        t.equal(page.html.includes('<summary>Publish a sample event</summary>'), times > 1, 'at first it is a step');
        t.match((await visitor.send(page, '/admin/overview/sample')).html, 'The sample event was published.');
        t.equal((await deliveries.list({ kind: 'idr_investigation_created' })).length, times);
    }
    const [newest] = await deliveries.list({ kind: 'idr_investigation_created' });
    t.match(await system.audit.list(), [{ actor: 'ada', operation: 'publishEvent', subject: newest?.eventId, outcome: 'done' }]);
});

t.test('waits for a slow doctor no longer than a page should, and shows what he said then', async (t) => {
    let say: (diagnosis: Diagnosis) => void = () => {};
    let asked = 0;
    const doctor = () => {
        asked += 1;
        return new Promise<Diagnosis>((resolve) => {
            say = resolve;
        });
    };
    const { visitor } = await visited(t, (system) => ({ ...system, webhooks: { ...system.webhooks, doctor } }));
    t.match(await overview(visitor), /still being looked at/);
    t.match(await overview(visitor), /still being looked at/);
    t.equal(asked, 1, 'he looks once at a time');
    say({
        healthy: false,
        findings: [
            { part: 'store', state: 'ok', text: 'Fine', advice: null },
            { part: 'names', state: 'wrong', text: 'No <names>', advice: 'Look' },
        ],
    });
    await until(async () => /Wrong:<\/strong> No &lt;names&gt;/.test(await overview(visitor)));
    say({ healthy: true, findings: [] });
});

t.test('says of a store that is away no more than that', async (t) => {
    const doctor = async () => ({
        healthy: false,
        findings: [{ part: 'store', state: 'wrong', text: 'The store cannot be used: away', advice: 'Start it' }],
    });
    const { visitor } = await visited(t, (system) => ({ ...system, webhooks: { ...system.webhooks, doctor } }));
    const html = await overview(visitor);
    t.match(html, /Wrong:<\/strong> The store cannot be used: away[\s\S]*Start it/);
    t.notMatch(html, /First steps/);
});

t.test('is there for who has no keys to make, and fails as others do', async (t) => {
    const { visitor } = await visited(t, ({ webhooks }) => ({ webhooks }));
    t.match(await overview(visitor), /Add Data Exporter/);
    const doctor = async () => {
        throw new Error('secret of ours');
    };
    const failing = await visited(t, ({ webhooks }) => ({ webhooks: { ...webhooks, doctor } }));
    const { status, html } = await failing.visitor.get('/admin/overview');
    t.equal(status, 500);
    t.notMatch(html, 'secret of ours');

    const list = async () => {
        throw new Error('secret of ours');
    };
    const keyless = await visited(t, (system) => ({ ...system, keys: { ...system.keys, list } }));
    t.equal((await keyless.visitor.get('/admin/overview')).status, 500);
});
