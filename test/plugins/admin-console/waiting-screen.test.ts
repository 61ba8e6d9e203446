import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { System } from '../../../plugins/admin-console/index.ts';
import { answering, host, investigation, register, systemOf } from './host.ts';
import { fieldsOf, Visitor } from './visitor.ts';

const KIND = 'idr_investigation_created';
const HOUR = 3_600_000;

/** An exporter whose receiver answers 401, and a delivery of it that waits an hour for its next try. */
async function waiting(t: Test, change: (system: ReturnType<typeof systemOf>) => System = (system) => system) {
    const server = await host();
    await register(server, { system: change(systemOf(server)), screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const receiver = await answering(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, name: 'alerts', schedule: [HOUR] });
    await exporters.start(exporter.id);
    receiver.status = 401;
    receiver.body = '{"error":"<b>no</b> \u202etoken"}\n\tat gate';
    const id = await refused(server);
    return {
        server,
        receiver,
        exporters,
        id,
        visitor: new Visitor(server),
        at: `/admin/exporters/${exporter.id}`,
        exporterId: exporter.id,
    };
}

async function refused(server: Server): Promise<string> {
    const { deliveries, publish } = server.plugins['webhook-exporter'];
    const [id = ''] = (await publish(KIND, investigation)).deliveries;
    await until(async () => (await deliveries.show(id)).lastCode === 'client_error');
    return id;
}

/** What a page says of something. */
function factOf(html: string, name: string): string {
    return html.split(`<dt>${name}</dt><dd>`)[1]?.split('</dd>')[0]?.trim() ?? '';
}

t.test('tries a delivery that waits for its next try by one button, and says what a 401 wants', async (t) => {
    const { server, receiver, visitor, id, at } = await waiting(t);
    const list = await visitor.get('/admin/deliveries?state=pending');
    t.match(list.html, /<td data-label="State"><span class="failed">failed, next try <time[^>]*>in [^<]+<\/time><\/span><\/td>/);
    t.match(list.html, `<a href="/admin/deliveries/${id}"><code class="failed">client_error</code></a>`);
    t.match(list.html, '<option value="pending" selected>waiting, for the first or the next try</option>');

    const page = await visitor.get(`/admin/deliveries/${id}`);
    t.match(page.html, /<dt>State<\/dt><dd><span class="failed">failed, next try <[\s\S]*<dt>Next try<\/dt><dd><time/);
    t.match(page.html, /The receiver wants credentials or a header[^<]*Give the exporter the credentials/);
    const answered = '{&#34;error&#34;:&#34;&lt;b&gt;no&lt;/b&gt; \uFFFDtoken&#34;}\n    at gate';
    t.match(
        page.html,
        `<div>The receiver answered:</div><pre tabindex="0" aria-label="The receiver answered:"><code>${answered}</code></pre>`,
    );
    const outcome = factOf(page.html, 'Last outcome');
    t.match(outcome, /client_error<[\s\S]*Answered 401[\s\S]*Give the exporter the credentials[\s\S]*at gate/);
    t.match(outcome, `<a href="${at}/edit#headers">Change its settings</a>`);
    t.ok(page.html.indexOf('Resend it now') > page.html.indexOf(outcome), 'what to do about it comes first');
    t.equal(page.html.split('The receiver answered:</div>').length, 2, 'it is said once');
    receiver.status = 204;
    const tried = await visitor.send(page, `/admin/deliveries/${id}/replay`);
    t.match(tried.html, /It is resent/);
    const { deliveries } = server.plugins['webhook-exporter'];
    await until(async () => (await deliveries.show(id)).state === 'delivered');
    t.notMatch((await visitor.get(`/admin/deliveries/${id}`)).html, /Resend it now/);
});

t.test('says after a test that has arrived that deliveries wait, and sends them by one button', async (t) => {
    const { server, receiver, visitor, at, id } = await waiting(t);
    const other = await refused(server);
    const failed = await visitor.send(await visitor.get(at), `${at}/test`);
    t.notMatch(failed.html, /Resend what waits/, 'it has not arrived');
    t.match(failed.html, `<a href="${at}/edit#headers">Change its settings</a>`);
    t.match(
        failed.html,
        /<section role="status" id="test">[\s\S]*The receiver answered:[\s\S]*at gate[\s\S]*<\/section>\s*<section class="actions"/,
    );
    t.match((await visitor.get(`${at}/edit`)).html, '<fieldset id="headers">');
    t.match(
        factOf(failed.html, 'Last outcome'),
        /^<code class="failed">client_error<\/code>[^<]*<time[^>]*>(?:now|\d+ seconds? ago)<\/time>, by a test/,
    );
    t.notMatch(failed.html, /The test since then/);
    receiver.status = 204;
    const tested = await visitor.send(await visitor.get(at), `${at}/test`);
    t.match(tested.html, /The test has arrived. What has failed before/);
    t.notMatch(tested.html, /The receiver refused the message/, 'nothing is said any more of what was mended');
    const outcome = factOf(tested.html, 'Last outcome');
    t.match(
        outcome,
        /^<code class="arrived">delivered<\/code> <time[^>]*>(?:now|\d+ seconds? ago)<\/time>, by a test<br>Before that: <code class="failed">client_error<\/code>[\s\S]*Answered 401$/,
    );
    // One within the same millisecond belongs to the one before.
    t.match(factOf(tested.html, 'Health'), /^(?:1 failure|2 failures) in a row<br>The test since then has arrived\.$/);
    const { deliveries } = server.plugins['webhook-exporter'];
    await deliveries.replay(other);
    await until(async () => (await deliveries.show(other)).state === 'delivered');
    const sent = await visitor.send(tested, `${at}/waiting`);
    t.match(sent.html, 'role="status">1 delivery was resent.');
    await until(async () => (await deliveries.show(id)).state === 'delivered');
    t.notMatch((await visitor.send(await visitor.get(at), `${at}/test`)).html, /Resend what waits/, 'nothing waits any more');
});

t.test('passes over a delivery that is being sent by itself by now, and says so when the store is away', async (t) => {
    const faults: string[] = ['CONFLICT', 'UNAVAILABLE'];
    const { receiver, visitor, at } = await waiting(t, ({ webhooks, ...system }) => {
        const replay = () => Promise.reject(new ScanwireError(faults.shift() as 'CONFLICT', 'The delivery cannot be replayed now'));
        return { ...system, webhooks: { ...webhooks, deliveries: { ...webhooks.deliveries, replay } } };
    });
    receiver.status = 204;
    const tested = await visitor.send(await visitor.get(at), `${at}/test`);
    t.match(await visitor.send(tested, `${at}/waiting`), {
        status: 200,
        path: /^\/admin\/deliveries\?exporterId=/,
        html: 'role="status">0 deliveries were resent.',
    });
    t.match(await visitor.send(tested, `${at}/waiting`), { status: 503, html: /The delivery cannot be replayed now/ });
});

t.test('leads to a replay, at a rate, where much waits', async (t) => {
    const { server, receiver, visitor, exporters, at, exporterId } = await waiting(t);
    await exporters.pause(exporterId);
    await server.plugins['webhook-exporter'].publishAll(Array.from({ length: 49 }, () => ({ kind: KIND, body: investigation })));
    receiver.status = 204;
    const tested = await visitor.send(await visitor.get(at), `${at}/test`);
    t.match(tested.html, `href="/admin/deliveries/replays?exporterId=${exporterId}">Resend what waits</a>`);
});

t.test('offers in the form of an exporter only what matters to it', async (t) => {
    const { visitor, exporters, at, exporterId } = await waiting(t);
    const names = async (path: string): Promise<readonly string[]> => fieldsOf((await visitor.get(path)).html, path).map(([name]) => name);
    const shown = async (): Promise<string> => (await visitor.get(`${at}/edit`)).html;
    t.ok((await names(`${at}/edit`)).includes('url'));
    t.notMatch(await shown(), /name="start"|name="keepHeaders"/, 'it runs, and has nothing that was given for its receiver');
    t.notMatch(await shown(), /named without a value|name="dropHeaders"/, 'there are no headers yet');
    await exporters.update(exporterId, { headers: [['X-Key', 'hidden-word']] });
    await exporters.stop(exporterId);
    t.match(await shown(), /A header that is named without a value stays[\s\S]*value="X-Key"[\s\S]*name="dropHeaders"/);
    t.notMatch(await shown(), 'hidden-word');
    t.match(await shown(), /name="keepHeaders"> If the new URL leads to another scheme[\s\S]*name="start"> Start it/);
});

t.test('puts changing and testing an exporter first, and tells stopping from pausing', async (t) => {
    const { visitor, at } = await waiting(t);
    const { html } = await visitor.get(at);
    const [, actions = ''] = /<section class="actions"[^>]*>([\s\S]*?)<\/section>/.exec(html) ?? [];
    const names = [...actions.matchAll(/<(?:button|a role="button")[^>]*>([^<]+)</g)].map(([, name]) => name);
    t.same(names, ['Edit', 'Send test', 'Stop', 'Pause', 'Deliveries', 'Replays']);
    t.match(actions, /Stopped, it gets nothing[^<]*Paused/);
    t.match(html, /<input id="secret" name="secret"[\s\S]*<button type="button" class="outline" hidden data-copy="secret"/);
});

t.test('says of an answer that is no text how long it is, and of a long one that it is the beginning', async (t) => {
    const { server, receiver, visitor } = await waiting(t);
    receiver.body = `${'\u0000'.repeat(1_500)}`;
    const binary = await visitor.get(`/admin/deliveries/${await refused(server)}`);
    t.match(binary.html, 'The receiver answered: 1,500 bytes that are no text.');
    receiver.body = `${'no '.repeat(1_000)}`;
    const long = await visitor.get(`/admin/deliveries/${await refused(server)}`);
    t.match(long.html, `${'no '.repeat(341)}n</code></pre><small>This is the beginning: 3,000 bytes were read.</small>`);
});

t.test('says that a delivery was given up, and leads to no settings that are gone', async (t) => {
    const { visitor, exporters, exporterId, id } = await waiting(t);
    const { deliveryId } = await exporters.test(exporterId);
    const { html } = await visitor.get(`/admin/deliveries/${deliveryId}`);
    t.match(factOf(html, 'State'), '<span class="failed">failed, given up</span>');
    await exporters.remove(exporterId);
    const page = await visitor.get(`/admin/deliveries/${id}`);
    t.match(factOf(page.html, 'Last outcome'), /client_error<[\s\S]*Give the exporter the credentials/);
    t.notMatch(page.html, 'Change its settings');
});
