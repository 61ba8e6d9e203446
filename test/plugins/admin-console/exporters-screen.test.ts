import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Server } from '@hapi/hapi';
import { decodeHTML } from 'entities';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { OPERATOR } from '../../../plugins/admin-console/audit.ts';
import { performerOf } from '../../../plugins/admin-console/handlers.ts';
import { texts } from '../../../plugins/admin-console/screens/texts.ts';
import { admin, host, investigation, receiver, register, systemOf } from './host.ts';
import { fieldsOf, Visitor } from './visitor.ts';

const ID = /\/exporters\/([0-9a-f-]{36})/;

async function visited(t: Test): Promise<{ server: Server; visitor: Visitor }> {
    const server = await host();
    await register(server, { system: systemOf(server), screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    return { server, visitor: new Visitor(server) };
}

/** An exporter that somebody has added by the form, and its page. */
async function added(t: Test, fields: Record<string, string | readonly string[] | null> = {}) {
    const { server, visitor } = await visited(t);
    const url = await receiver(t);
    const form = await visitor.get('/admin/exporters/new');
    const page = await visitor.send(form, '/admin/exporters', { url, name: 'alerts', ...fields });
    const [, id = ''] = ID.exec(page.path) ?? [];
    return { server, visitor, url, form, page, at: `/admin/exporters/${id}`, id, exporters: server.plugins['webhook-exporter'].exporters };
}

t.test('adds an exporter by the fields of the specification and shows its test', async (t) => {
    const { form, page, exporters, id } = await added(t, { headerName: ['Authorization', ''], headerValue: ['Bearer x', ''] });
    t.match(new Map(fieldsOf(form.html, '/admin/exporters')).get('secret'), /^whsec_/, 'a secret is there already');
    const required = [...form.html.matchAll(/<label>([^<]*) <small>\(required\)<\/small>\s*<input [^>]* required/g)].map(
        ([, label]) => label,
    );
    t.same(required, ['Collector', 'URL', 'Secret']);
    t.match(form.html, /For X-Api-Key: 1234abcd the header is X-Api-Key, the value 1234abcd/);
    t.match(page.html, /The exporter was saved/);
    t.match(page.html, /Warning:<\/strong> messages and header values go out unencrypted/);
    t.match(page.html, /<code class="arrived">delivered<\/code> Answered 204/);
    t.match(page.html, /<dt>Connection<\/dt><dd>\d+ ms/);
    t.match(await exporters.show(id), {
        name: 'alerts',
        state: 'running',
        collector: 'default',
        type: 'investigation',
        trust: 'strict',
        headerNames: ['Authorization'],
        kinds: null,
    });
    t.notMatch(page.html, 'Bearer x');
    t.match(page.html, `href="/admin/deliveries?exporterId=${id}"`);
});

/** Fields of the form that are shown at once, and those that are folded away, in their order. */
function fieldsShown(html: string): { readonly shown: readonly string[]; readonly more: readonly string[] } {
    const namesIn = (part: string): readonly string[] => [
        ...new Set(
            [...part.matchAll(/<(?:input|select|textarea)[^>]* name="([^"]+)"|<(?:select|textarea) name="([^"]+)"/g)].map(
                (found) => found[1] ?? found[2] ?? '',
            ),
        ),
    ];
    const [, form = ''] = html.split('action="/admin/exporters"');
    const [before = '', rest = ''] = form.replace(/<input type="hidden"[^>]*>/g, '').split(/<details[^>]*><summary>More/);
    const after = rest.slice(rest.lastIndexOf('</details>'), rest.indexOf('</form>'));
    return {
        shown: [...namesIn(before), ...namesIn(after)],
        more: namesIn(rest.slice(0, rest.lastIndexOf('</details>'))),
    };
}

t.test('asks at once for the fields of the specification and no other, and folds what we add away', async (t) => {
    const { visitor } = await visited(t);
    const { html } = await visitor.get('/admin/exporters/new');
    const { shown, more } = fieldsShown(html);
    t.same(shown, [
        'kind',
        'collector',
        'name',
        'url',
        'secret',
        'headerName',
        'headerValue',
        'type',
        'trustAll',
        'trustSelfSigned',
        'start',
    ]);
    for (const name of [
        'kinds',
        'filter',
        'sampleKind',
        'sampleBody',
        'format',
        'basic.username',
        'oauth.tokenUrl',
        'proxy.url',
        'ordered',
        'rate',
    ]) {
        t.ok(more.includes(name), name);
    }
    t.match(html, /<details><summary>More, all of it optional/, 'it is folded');
});

t.test('has a text for each warning of the library', async (t) => {
    const { visitor, at } = await added(t, { url: 'https://127.0.0.1:80/#part', trustAll: 'on', start: null });
    const codes = Object.keys(texts.exporters.warnings);
    const { html } = await visitor.get(`${at}?warning=${codes.join('+')}`);
    t.equal(html.match(/<strong>Warning:<\/strong>/g)?.length, codes.length);
    const made = await visitor.send(await visitor.get('/admin/exporters/new'), '/admin/exporters', {
        url: 'https://127.0.0.1:80/#part',
        start: null,
    });
    t.match(made.html, 'the URL is https on a port that is for plain http.');
    t.match(made.html, 'the fragment of the URL');
    t.match(made.html, 'another exporter has the same URL, so each event goes there twice');
});

t.test('says of a receiver that fails when it is probed next', async (t) => {
    const server = await host();
    const { webhooks } = systemOf(server);
    const failing = { breaker: 'open' as const, nextProbe: new Date(Date.now() + 600_000) };
    const show: typeof webhooks.exporters.show = async (...asked) => {
        const exporter = await webhooks.exporters.show(...asked);
        return { ...exporter, consecutiveFailures: 7, health: { ...exporter.health, ...failing } };
    };
    const page: typeof webhooks.exporters.page = async (query) =>
        (await webhooks.exporters.page(query)).map((exporter) => ({ ...exporter, health: { ...exporter.health, ...failing } }));
    await register(server, { system: { webhooks: { ...webhooks, exporters: { ...webhooks.exporters, show, page } } }, screens: {} });
    const { exporter } = await webhooks.exporters.create({ url: await receiver(t) });
    for (const path of ['/admin/exporters', `/admin/exporters/${exporter.id}`]) {
        t.match((await new Visitor(server).get(path)).html, /, breaker open, next probe <time [^>]*>in (?:9|10) minutes<\/time>/, path);
    }
});

t.test('says beside the field what is wrong with an exporter, and adds rows for headers', async (t) => {
    const { visitor } = await visited(t);
    const form = await visitor.get('/admin/exporters/new');
    const cases: readonly [Record<string, string>, string, RegExp][] = [
        [{ url: 'ftp://example.com' }, 'url', /URL must/],
        [{ url: 'http://10.0.0.1/' }, 'url', /not open to receivers/],
        [{ url: 'https://example.com', headerName: 'Host', headerValue: 'x' }, 'headers', /./],
        [{ url: 'https://example.com', filter: '{' }, 'filter', /filter must be JSON/],
        [{ url: 'https://example.com', template: 'x' }, 'template', /template must be JSON/],
        [{ url: 'https://example.com', collector: 'a b' }, 'collector', /letters, digits/],
        [{ url: 'https://example.com', 'basic.username': 'a:b' }, 'basic.username', /colon/],
        [{ url: 'https://example.com', rate: 'many' }, 'rate', /must be a number/],
    ];
    for (const [fields, field, message] of cases) {
        const refused = await visitor.send(form, '/admin/exporters', fields);
        t.equal(refused.status, 400, field);
        t.match(refused.html, new RegExp(`<small id="${field}-said" class="fault">[^<]*${message.source}`), field);
        t.match(refused.html, `value="${fields.url}"`, 'what was typed is kept');
    }
    const more = await visitor.send(form, '/admin/exporters', { moreHeaders: 'yes', url: 'kept' });
    t.equal(more.status, 200);
    t.equal(more.html.match(/name="headerName"/g)?.length, 4);
    t.match(more.html, 'value="kept"');
    t.match((await visitor.get('/admin/exporters')).html, /There is no exporter yet/);
});

t.test('shows what would be sent with what the form holds, and saves nothing', async (t) => {
    const { visitor, exporters, at } = await added(t, { headerName: 'X-Key', headerValue: 'hidden-word' });
    const form = await visitor.get('/admin/exporters/new');
    const preview = { preview: 'yes', url: '', headerName: 'X-Other', headerValue: 'hidden-word' };
    const wanted = await visitor.send(form, '/admin/exporters', { ...preview, kinds: 'idr_*' });
    t.equal(wanted.status, 200);
    t.match(wanted.html, /It gets this event[\s\S]*X-Vendor-Event[\s\S]*X-Other<\/dt><dd><code>\*\*\*[\s\S]*Harvested credentials/);
    t.notMatch(/id="preview"[\s\S]*<details>/.exec(wanted.html)?.[0], 'hidden-word');
    t.match(wanted.html, 'value="idr_*"', 'what was typed is kept');
    const filter = JSON.stringify({ path: 'title', op: '=', value: '<b>' });
    t.match((await visitor.send(form, '/admin/exporters', { ...preview, filter })).html, /It does not get this event: Its filter/);
    for (const [typed, said] of [
        [{ filter: '{' }, 'filter must be JSON'],
        [{ sampleBody: '{' }, 'The body of the event must be JSON'],
        [{ sampleKind: '<i>' }, /&lt;i&gt;/],
        [{ kinds: 'none' }, /<p class="fault">kinds\[0\]/i],
    ] as const) {
        const { status, html } = await visitor.send(form, '/admin/exporters', { ...preview, ...typed });
        t.equal(status, 200);
        t.match(html, said);
        t.notMatch(html, /<i>|It gets this event\./);
    }

    const before = await exporters.list();
    const changed = await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { preview: 'yes', kinds: 'exporter_failing' });
    t.match(changed.html, /It does not get this event: Its kinds do not match/);
    const kept = await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { preview: 'yes', dropHeaders: 'on' });
    t.match(kept.html, 'It gets this event');
    t.notMatch(kept.html, /<dt>X-Key/);
    t.match(
        (await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { preview: 'yes' })).html,
        /<dt>X-Key<\/dt><dd><code>\*\*\*/,
    );
    t.same(await exporters.list(), before);
});

t.test('shows how a test goes to a script that looks, and waits for it otherwise', async (t) => {
    const { server, visitor } = await visited(t);
    const held: (() => void)[] = [];
    const slow = createServer((request, response) => void request.resume().on('end', () => held.push(() => response.writeHead(204).end())));
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => slow.close().closeAllConnections());
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`;

    const scripted = new Visitor(server, { ...admin, 'hx-request': 'true' });
    const made = await scripted.send(await scripted.get('/admin/exporters/new'), '/admin/exporters', { url });
    const ended = await followed(made.path);
    const [at = ''] = made.path.split('?');
    await followed((await scripted.send(await scripted.get(at), `${at}/test`)).path);
    await followed((await scripted.send(await scripted.get(`${at}/edit`), `${at}/edit`, { name: 'other' })).path);
    t.match(ended, 'The exporter was saved');

    /** The page of a test, once that has its outcome. */
    async function followed(path: string): Promise<string> {
        await until(async () => /It is being sent/.test((await visitor.get(path)).html) && held.length > 0);
        const { html: meanwhile } = await visitor.get(path);
        t.match(meanwhile, /hx-get="[^"]*\?test=[0-9a-f-]{36}"/);
        t.match(meanwhile, /<dt>Connection<\/dt><dd>[\d,]+ ms<\/dd>[\s\S]*<dt>First byte<\/dt><dd>not yet</, 'step by step');
        held.shift()?.();
        await until(async () =>
            /<section[^>]* id="test"><h2>Test event<\/h2><p><code class="arrived">delivered<\/code>/.test((await visitor.get(path)).html),
        );
        const { html } = await visitor.get(path);
        t.match(html, /<dt>Last outcome<\/dt><dd><code class="arrived">delivered<\/code> [\s\S]*, by a test<\/dd>/);
        t.notMatch(html, 'hx-get=', 'nothing more is looked for');
        return html;
    }
});

t.test('does to an exporter what its page offers', async (t) => {
    const { visitor, exporters, at, id } = await added(t, { start: null });
    const steps: readonly [string, RegExp, object][] = [
        ['start', /The exporter runs/, { state: 'running' }],
        ['pause', /is paused/, { pausedAt: Date }],
        ['resume', /What waits is sent/, { pausedAt: null }],
        ['test', /A test event was sent[\s\S]*<code class="arrived">delivered/, {}],
        ['stop', /is stopped/, { state: 'stopped' }],
    ];
    for (const [name, said, expected] of steps) {
        const page = await visitor.send(await visitor.get(at), `${at}/${name}`);
        t.equal(page.status, 200, name);
        t.match(page.html, said);
        t.match(await exporters.show(id), expected);
        t.equal((await visitor.get(`${at}/${name}`)).path, at, 'loading it again shows the exporter');
    }
    const list = await visitor.get('/admin/exporters');
    t.match(
        list.html,
        /alerts<\/a>[\s\S]*>stopped<\/td>\s*<td[^>]*>none<\/td>\s*<td[^>]*>[\s\S]*<\/td>\s*<td[^>]*>nothing but tests was sent yet<\/td>/,
    );

    const rotated = await visitor.send(await visitor.get(at), `${at}/secret`);
    t.match(rotated.html, /The new secret signs from now on/);
    const endless = await visitor.send(rotated, `${at}/secret`, { overlap: '721' });
    t.equal(endless.status, 400);
    t.match(endless.html, /overlap.*must be less than or equal/s);
    const refused = await visitor.send(rotated, `${at}/secret`, { secret: 'whsec_short' });
    t.equal(refused.status, 400);
    t.match(refused.html, /<small id="secret-said" class="fault">/);

    const gone = await visitor.send(rotated, `${at}/remove`);
    t.equal(gone.path, '/admin/exporters?removed');
    t.match(gone.html, /The exporter was removed/);
    t.equal((await visitor.get(at)).status, 404);
});

t.test('changes an exporter, and keeps the secrets that are left empty', async (t) => {
    const { visitor, exporters, at, id, url } = await added(t, {
        headerName: 'X-Key',
        headerValue: 'v',
        'basic.username': 'u',
        'basic.password': 'p',
    });
    const form = await visitor.get(`${at}/edit`);
    t.match(form.html, `value="${url}"`, 'the whole URL');
    const changed = await visitor.send(form, `${at}/edit`, {
        name: 'renamed',
        kinds: 'idr_investigation_*',
        trustSelfSigned: 'on',
        signatures: ['hex'],
        filter: '{"all":[]}',
    });
    const kept = await exporters.show(id);
    t.match(kept, { name: 'alerts' }, 'what is refused changes nothing');
    t.equal(changed.status, 400);
    const saved = await visitor.send(form, `${at}/edit`, {
        name: 'renamed',
        kinds: 'idr_investigation_*',
        trustSelfSigned: 'on',
        signatures: ['hex'],
        rate: '10',
        ordered: 'on',
        afterExhausted: 'hold',
    });
    t.match(saved.html, /The changes were saved/);
    t.match(await exporters.show(id), {
        name: 'renamed',
        kinds: ['idr_investigation_*'],
        trust: 'self-signed',
        signatures: ['hex'],
        headerNames: ['X-Key'],
        authentication: ['basic'],
        rate: 10,
        ordered: true,
        afterExhausted: 'hold',
    });
    t.match((await visitor.get(`${at}/edit`)).html, /name="ordered" checked[\s\S]*value="hold" selected/);
    const more = await visitor.send(form, `${at}/edit`, { moreHeaders: 'yes' });
    t.equal(more.html.match(/name="headerName"/g)?.length, 5);
    await visitor.send(form, `${at}/edit`, { dropHeaders: 'on', trustAll: 'on' });
    t.match(await exporters.show(id), { headerNames: [], trust: 'all' });
});

t.test('shows the retry delays of an exporter that has its own, which its form leaves as they are', async (t) => {
    const { visitor, exporters, at, id } = await added(t);
    t.notMatch((await visitor.get(at)).html, texts.exporters.schedule);
    await exporters.update(id, { schedule: [5_000, 120_000] });
    t.match((await visitor.get(at)).html, '<dt>Retry delays</dt><dd>5s, 2m</dd>');
    await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { name: 'renamed' });
    t.match(await exporters.show(id), { name: 'renamed', schedule: [5_000, 120_000] });
});

t.test('gives an exporter to another owner, and says beside the field why it cannot', async (t) => {
    const { server, visitor, exporters, at, id } = await added(t);
    for (const owner of ['acme', '', 'other']) {
        await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { owner });
        t.equal((await exporters.show(id)).owner, owner || null);
    }
    const form = await visitor.get(`${at}/edit`);
    t.equal(new Map(fieldsOf(form.html, `${at}/edit`)).get('owner'), 'other');

    await server.plugins['webhook-exporter'].publish('idr_investigation_created', investigation, { owner: 'other' });
    const refused = await visitor.send(form, `${at}/edit`, { owner: 'acme', name: 'same' });
    t.match(refused.html, /Cannot change the owner of an exporter while deliveries/);
    t.match(await exporters.show(id), { owner: 'other', name: 'alerts' });
    await visitor.send(form, `${at}/edit`, { name: 'same' });
    t.match(await exporters.show(id), { owner: 'other', name: 'same' });
});

t.test('adds a header beside one whose value nobody has at hand, and drops one whose name is emptied', async (t) => {
    const seen: IncomingMessage['headers'][] = [];
    const url = await receiver(t, ({ headers }) => {
        seen.push(headers);
        return 204;
    });
    const { visitor, exporters, at, id } = await added(t, {
        url,
        headerName: ['X-First', 'X-Second'],
        headerValue: ['hidden-one', 'hidden-two'],
    });
    const form = await visitor.get(`${at}/edit`);
    const rows = fieldsOf(form.html, `${at}/edit`).filter(([name]) => name === 'headerName' || name === 'headerValue');
    t.same(
        rows.map(([, value]) => value),
        ['X-First', '', 'X-Second', '', '', '', '', ''],
    );
    t.equal(form.html.match(/placeholder="stays as it is"/g)?.length, 2);
    t.match(form.html, 'A header that is named without a value stays as it is; one whose name is emptied is dropped.');
    t.notMatch(form.html, /hidden-(?:one|two)/);

    const headerName = ['X-First', 'X-Second', 'X-Third', ''];
    const preview = await visitor.send(form, `${at}/edit`, { preview: 'yes', headerName, headerValue: ['', '', 'hidden-three', ''] });
    t.match(preview.html, /<dt>X-First<\/dt><dd><code>\*\*\*[\s\S]*<dt>X-Third<\/dt><dd><code>\*\*\*/);
    await visitor.send(form, `${at}/edit`, { headerName, headerValue: ['', '', 'hidden-three', ''] });
    t.same((await exporters.show(id)).headerNames, ['X-First', 'X-Second', 'X-Third']);
    t.match(seen.at(-1), { 'x-first': 'hidden-one', 'x-second': 'hidden-two', 'x-third': 'hidden-three' });

    await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { headerName: ['X-First', '', ''], headerValue: ['', '', ''] });
    t.same((await exporters.show(id)).headerNames, ['X-First']);
    t.match(seen.at(-1), { 'x-first': 'hidden-one', 'x-second': undefined });
    const refused = await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { headerName: 'X-New', headerValue: '' });
    t.equal(refused.status, 400);
    t.match(refused.html, '<small id="headers-said" class="fault">');
    await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, {
        name: 'kept',
        headersShown: null,
        headerName: null,
        headerValue: null,
    });
    t.match(await exporters.show(id), { name: 'kept', headerNames: ['X-First'] }, 'a form without them says nothing of them');
    await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`, { headerName: '', headerValue: '' });
    t.same((await exporters.show(id)).headerNames, []);
});

t.test('takes a legacy exporter to the library, and never back', async (t) => {
    const { visitor, exporters, at, id } = await added(t, { legacy: 'on', start: null, owner: 'acme' });
    t.match(await exporters.show(id), { type: 'investigation_legacy', owner: 'acme' });
    const form = await visitor.get(`${at}/edit`);
    t.match(form.html, /there is no way back/);
    await visitor.send(form, `${at}/edit`, { type: 'investigation_legacy_and_library' });
    t.match(await exporters.show(id), { type: 'investigation_legacy_and_library' });
    const back = await visitor.send(form, `${at}/edit`, { type: 'investigation_legacy' });
    t.equal(back.status, 409);
    t.match(back.html, /<small id="type-said" class="fault">|role="alert" class="fault"/);
});

t.test('says in the place of its health why an exporter was stopped', async (t) => {
    const server = await host();
    const system = systemOf(server);
    const webhooks = system.webhooks as NonNullable<typeof system.webhooks>;
    const show: typeof webhooks.exporters.show = async (...asked) => ({
        ...(await webhooks.exporters.show(...asked)),
        stopReason: 'The receiver answered 410 Gone',
    });
    const page: typeof webhooks.exporters.page = async (query) =>
        (await webhooks.exporters.page(query)).map((exporter) => ({ ...exporter, stopReason: 'The receiver answered 410 Gone' }));
    await register(server, { system: { webhooks: { ...webhooks, exporters: { ...webhooks.exporters, show, page } } }, screens: {} });
    const { exporter } = await webhooks.exporters.create({ url: await receiver(t) });
    const visitor = new Visitor(server);
    for (const path of ['/admin/exporters', `/admin/exporters/${exporter.id}`]) {
        const page = await visitor.get(path);
        t.equal(page.html.match(/The receiver answered 410 Gone/g)?.length, 1, path);
        t.notMatch(page.html, />well</);
    }
});

t.test('offers to replay what was held, when an exporter runs again that its receiver had stopped', async (t) => {
    const status = { now: 204 };
    const { server, visitor, exporters, at, id } = await added(t, { url: await receiver(t, () => status.now) });
    const { publish, deliveries } = server.plugins['webhook-exporter'];
    t.notMatch((await visitor.get(at)).html, /Replay it/);
    status.now = 410;
    await publish('idr_investigation_created', investigation);
    await until(async () => (await exporters.get(id)).state === 'stopped');
    await publish('idr_investigation_created', investigation);
    t.match(await deliveries.count({ state: 'held' }), { count: 1 });
    status.now = 204;
    const started = await visitor.send(await visitor.get(at), `${at}/start`);
    t.match(started.html, /Held while it was stopped by what its receiver did: 1\. <a href="([^"]+)">Replay it</);
    const [, link = ''] = /<a href="([^"]+)">Replay it</.exec(started.html) ?? [];
    const replays = await visitor.get(decodeHTML(link));
    const asked = new Map(fieldsOf(replays.html, '/admin/deliveries/replays'));
    t.match([asked.get('exporterId'), asked.get('what')], [id, 'held']);
    const counted = await visitor.send(replays, '/admin/deliveries/replays', { step: 'count' });
    await visitor.send(counted, '/admin/deliveries/replays', { step: 'begin' });
    await until(async () => (await deliveries.count({ state: 'held' })).count === 0);
    t.notMatch((await visitor.get(started.path)).html, /Replay it/, 'nor once it was');
});

t.test('shows nothing of an exporter as markup, and no test of another', async (t) => {
    const name = '"><script>alert(1)</script>';
    const { server, visitor, at, url } = await added(t, { name, headerName: 'X-A', headerValue: '"><img src=x>' });
    const chosenFrom = ['', '/activity', '/replays'].map((path) => `/admin/deliveries${path}`);
    for (const path of ['/admin/exporters', at, `${at}/edit`, `${at}?done=constructor&warning=<b>+toString+plain_http`, ...chosenFrom]) {
        const page = await visitor.get(path);
        t.equal(page.status, 200, path);
        t.notMatch(page.html, /<script>|<img|<b>|native code/);
    }
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: `${url}other` });
    const { test } = await exporters.start(exporter.id);
    t.match((await visitor.get(`${at}?test=${test.deliveryId}`)).html, /It has no outcome yet/);
    t.equal((await visitor.get(`${at}?test=nothing`)).status, 404);
});

t.test('draws in the list what became of a day, and says what waits by age', async (t) => {
    const { server, visitor, exporters, id } = await added(t);
    const { deliveries, publish } = server.plugins['webhook-exporter'];
    t.match(
        (await visitor.get('/admin/exporters')).html,
        /<svg class="chart day"[^>]*aria-label="100 % delivered. Accepted within 24 hours: 1, delivered: 1, last attempt failed: 0"/,
        'the test',
    );
    await exporters.update(id, { url: 'http://127.0.0.1:9/' });
    await publish('idr_investigation_created', investigation);
    await until(async () => (await deliveries.list({ outcome: 'connect_refused' })).length > 1);
    const { html } = await visitor.get('/admin/exporters');
    t.match(html, /aria-label="33 % delivered. Accepted within 24 hours: 3, delivered: 1, last attempt failed: 2"/);
    t.match(html, /<rect class="failed"[^>]*><\/rect><rect class="delivered"/);
    t.match(html, /<small>33 % of 3<\/small>/);
    t.match(html, /<span class="age">1 accepted in the last minute<\/span>/);
});

t.test('gives no share of a day of which nothing has come to an end', async (t) => {
    const { server, visitor } = await visited(t);
    const { exporters, deliveries } = server.plugins['webhook-exporter'];
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    t.teardown(() => silent.close().closeAllConnections());
    const { exporter } = await exporters.create({ url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/` });
    await exporters.test(exporter.id, { wait: false });
    await until(async () => (await deliveries.count({ state: 'sending' })).count === 1);
    t.match((await visitor.get('/admin/exporters')).html, /<small>– of 1<\/small>/);
});

t.test('lists many exporters on several pages', async (t) => {
    const { server, visitor } = await visited(t);
    for (let number = 1; number <= 26; number += 1) {
        await server.plugins['webhook-exporter'].exporters.create({ url: `https://example.com/${number}`, name: `number ${number}` });
    }
    const first = await visitor.get('/admin/exporters');
    t.match(first.html, /number 25</);
    t.notMatch(first.html, /number 26</);
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.html) ?? [];
    const second = await visitor.get(next);
    t.match(second.html, /number 26</);
    t.notMatch(second.html, /number 25<|rel="next"/);
});

t.test('leads on from a page that says what failed', async (t) => {
    const server = await host();
    const system = systemOf(server);
    const webhooks = system.webhooks as NonNullable<typeof system.webhooks>;
    const start = async (): Promise<never> => {
        throw new ScanwireError('UNAVAILABLE', 'The queue cannot be used now');
    };
    await register(server, { system: { webhooks: { ...webhooks, exporters: { ...webhooks.exporters, start } } }, screens: {} });
    const visitor = new Visitor(server);
    const form = await visitor.get('/admin/exporters/new');
    const failed = await visitor.send(form, '/admin/exporters', { url: await receiver(t), name: 'alerts' });
    t.equal(failed.status, 503);
    const [, to = ''] = /The queue cannot be used now<\/p><p><a href="([^"]+)">Back/.exec(failed.html) ?? [];
    const exporter = await visitor.get(decodeHTML(to));
    t.match(exporter.html, /<h1>alerts<[\s\S]*The exporter was saved[\s\S]*<dd>stopped/);

    const at = exporter.path.replace(/\?.*/, '');
    const again = await visitor.send(exporter, `${at}/start`);
    t.equal(again.status, 503);
    t.match(again.html, `<a href="${at}/start">Back</a>`);
    t.match((await visitor.get(`${at}/start`)).html, /<h1>alerts</);
    const foreign = await visitor.post(`${at}/stop`, '', { 'content-type': 'application/x-www-form-urlencoded' });
    t.equal(foreign.status, 403);
    t.match(foreign.html, `<a href="${at}/stop">Back</a>`);
    t.notMatch((await visitor.get('/admin/exporters/none')).html, 'Back');
});

t.test('answers with a page when an exporter cannot be saved or previewed, since the store is away', async (t) => {
    const server = await host();
    const { webhooks } = systemOf(server);
    const away = async (): Promise<never> => {
        throw new ScanwireError('UNAVAILABLE', 'The database cannot be used now');
    };
    const exporters = { ...webhooks.exporters, create: away, previewDraft: away };
    await register(server, { system: { webhooks: { ...webhooks, exporters } }, screens: {} });
    const visitor = new Visitor(server);
    const form = await visitor.get('/admin/exporters/new');
    for (const asked of [{}, { preview: 'yes' }]) {
        const page = await visitor.send(form, '/admin/exporters', { url: 'https://hooks.example.com/', name: 'alerts', ...asked });
        t.equal(page.status, 503);
        t.match(page.html, /The database cannot be used now/);
    }
});

t.test('does nothing of a part that the system does not have', async (t) => {
    await t.rejects(performerOf({}, OPERATOR)('listKeys', {}), { code: 'NOT_FOUND', message: 'There is no operation listKeys here' });
    await t.rejects(performerOf({}, { ...OPERATOR, owner: 'ann' })('listExporters', {}), { code: 'NOT_FOUND' });
});

t.test('says in words what the last outcome and that of a test mean, and what to do', async (t) => {
    const status = { now: 204 };
    const { server, visitor, at } = await added(t, { url: await receiver(t, () => status.now) });
    t.notMatch((await visitor.get(at)).html, 'class="words"', 'nothing where all is well');
    status.now = 503;
    await server.plugins['webhook-exporter'].publish('idr_investigation_created', investigation);
    const repair = /<code class="failed">server_error<\/code>[\s\S]*The receiver failed, with a 5xx status\. Repair the receiver/;
    await until(async () => repair.test((await visitor.get(at)).html));
    status.now = 301;
    const tested = await visitor.send(await visitor.get(at), `${at}/test`);
    t.match(
        tested.html,
        /id="test">[\s\S]*<code class="failed">redirect_refused<\/code>[\s\S]*Give the exporter the final URL\.[\s\S]*<dt>State/,
    );
    t.match(tested.html, repair, 'a test is no outcome of the exporter');
});

t.test('says that the list begins again where the exporter behind which it was to go on is gone', async (t) => {
    const { visitor, exporters, id } = await added(t);
    const { exporter } = await exporters.create({ url: await receiver(t), name: 'second' });
    const next = await visitor.get(`/admin/exporters?after=${id}`);
    t.notMatch(next.html, /alerts|beginning of the list/);
    await exporters.remove(id);
    const again = await visitor.get(`/admin/exporters?after=${id}`);
    t.match(again.html, 'this is the beginning of the list');
    t.match(again.html, exporter.id);
});
