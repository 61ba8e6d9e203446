import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import type { System } from '../../../plugins/admin-console/index.ts';
import { authority, type Credentials, certificate } from '../../support/certificates.ts';
import { host, register, systemOf } from './host.ts';
import { fieldsOf, type Seen, Visitor } from './visitor.ts';

type Fields = Readonly<Record<string, string>>;

const OAUTH: Fields = { 'oauth.tokenUrl': 'https://tokens.example.com/', 'oauth.clientId': 'me', 'oauth.clientSecret': 'hidden-word' };
const PROXY: Fields = { 'proxy.url': 'http://ann:hidden-word@proxy.example.com:3128' };

/** A visitor of a console whose changes are written down. */
async function visited(t: Test) {
    const server: Server = await host();
    const system = systemOf(server);
    const webhooks = system.webhooks as Required<System>['webhooks'];
    const { exporters } = webhooks;
    const changes: object[] = [];
    const update: typeof exporters.update = async (id, change, ...rest) => {
        changes.push(change);
        return await exporters.update(id, change, ...rest);
    };
    await register(server, { system: { ...system, webhooks: { ...webhooks, exporters: { ...exporters, update } } }, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const visitor = new Visitor(server);
    const form = await visitor.get('/admin/exporters/new');
    const add = (fields: Fields): Promise<Seen> =>
        visitor.send(form, '/admin/exporters', { url: 'https://example.com/', start: null as never, ...fields });
    return { visitor, exporters, changes, form, add };
}

async function identity(): Promise<{ readonly leaf: Credentials; readonly root: Credentials }> {
    const root = await authority('Root');
    return { root, leaf: await certificate({ authority: root }) };
}

t.test('gives an exporter all that it can authenticate by', async (t) => {
    const { add, exporters, visitor, changes } = await visited(t);
    const { leaf, root } = await identity();
    const page = await add({
        ...OAUTH,
        'oauth.scope': 'events',
        'oauth.authMethod': 'client_secret_post',
        'clientCertificate.certificate': leaf.cert,
        'clientCertificate.key': leaf.key,
        ca: root.cert,
        ...PROXY,
        'proxy.resolvesNames': 'on',
    });
    t.match(page.html, /The exporter was saved/);
    t.match(page.html, /<dd>OAuth 2, Client certificate, Private authorities, Proxy<\/dd>/);
    const [exporter] = await exporters.list();
    t.strictSame(exporter?.authentication.toSorted(), ['ca', 'clientCertificate', 'oauth', 'proxy']);
    const at = `/admin/exporters/${exporter?.id}`;
    const edit = await visitor.get(`${at}/edit`);
    t.equal(edit.html.match(/<span>, set<\/span>/g)?.length, 4);
    t.notMatch(page.html + edit.html, /hidden-word|BEGIN|tokens\.example|proxy\.example\.com:3128"/, 'nothing of it is shown again');
    const typed = fieldsOf(edit.html, `${at}/edit`).filter(([name]) => /^(?:basic|oauth|clientCertificate|ca|proxy)\b/.test(name));
    t.ok(typed.length > 10 && typed.every(([, value]) => value === ''));

    await visitor.send(edit, `${at}/edit`, { name: 'renamed' });
    t.equal((await exporters.show(exporter?.id ?? '')).authentication.length, 4, 'what is left empty stays');
    await visitor.send(edit, `${at}/edit`, { drop: ['oauth', 'proxy', 'trust'], 'basic.password': 'only' });
    t.strictSame((await exporters.show(exporter?.id ?? '')).authentication.toSorted(), ['basic', 'ca', 'clientCertificate']);
    t.match(changes.at(-1), { oauth: null, proxy: null, basic: { username: '', password: 'only' } });
    const unasked = await visitor.send(edit, `${at}/edit`, { drop: 'proxy', ...PROXY });
    t.match(
        unasked.html,
        /Basic must be given again, or keepHeaders be true/,
        'who gave the authorities may read what goes through the proxy',
    );
    const again = await visitor.send(edit, `${at}/edit`, { drop: 'proxy', ...PROXY, keepHeaders: 'on' });
    t.match(again.html, /The changes were saved/);
    t.match(changes.at(-1), { proxy: { url: PROXY['proxy.url'] } }, 'what is entered wins');
});

t.test('hands the parts on as they were entered', async (t) => {
    const { add, exporters, visitor, changes } = await visited(t);
    await add({});
    const [exporter] = await exporters.list();
    const at = `/admin/exporters/${exporter?.id}/edit`;
    const form = await visitor.get(at);
    t.notMatch(form.html, /name="drop"|, set</, 'there is nothing to drop');
    await visitor.send(form, at, { ...OAUTH, 'oauth.audience': 'a', 'proxy.resolvesNames': 'on', ...PROXY });
    t.strictSame((changes.at(-1) as { oauth: object }).oauth, {
        tokenUrl: 'https://tokens.example.com/',
        clientId: 'me',
        clientSecret: 'hidden-word',
        audience: 'a',
    });
    t.strictSame((changes.at(-1) as { proxy: object }).proxy, { url: PROXY['proxy.url'], resolvesNames: true });
});

t.test('says beside its field what is wrong, and sends no secret back', async (t) => {
    const { add, exporters } = await visited(t);
    const { leaf, root } = await identity();
    const cases: readonly [Fields, string, RegExp][] = [
        [{ 'oauth.tokenUrl': 'http://tokens.example.com/' }, 'oauth.clientId', /is required/],
        [{ ...OAUTH, 'oauth.tokenUrl': 'http://tokens.example.com/' }, 'oauth.tokenUrl', /must be https/],
        [{ ...OAUTH, 'oauth.ca': 'x' }, 'oauth.ca', /must be certificates in PEM/],
        [{ ...OAUTH, 'oauth.authMethod': 'x' }, 'oauth.authMethod', /must be one of/],
        [{ 'oauth.authMethod': 'client_secret_post' }, 'oauth.tokenUrl', /is required/],
        [{ 'clientCertificate.certificate': leaf.cert }, 'clientCertificate.key', /is required/],
        [{ 'clientCertificate.certificate': leaf.cert, 'clientCertificate.key': root.key }, 'clientCertificate.key', /is not that of/],
        [{ 'clientCertificate.certificate': 'x', 'clientCertificate.key': leaf.key }, 'clientCertificate.certificate', /in PEM/],
        [{ ca: leaf.key }, 'ca', /must be certificates in PEM/],
        [{ url: 'http://example.com/', ca: root.cert }, 'ca', /needs a URL with https/],
        [{ 'proxy.url': 'socks://hidden-word' }, 'proxy.url', /must be an absolute/],
        [{ 'proxy.resolvesNames': 'on' }, 'proxy.url', /is required/],
        [{ ...PROXY, 'proxy.ca': 'x' }, 'proxy.ca', /in PEM/],
    ];
    for (const [fields, field, message] of cases) {
        const refused = await add(fields);
        t.equal(refused.status, 400, field);
        const [, fold = ''] = new RegExp(`<small id="${field}-said" class="fault">([^<]*${message.source})`).exec(refused.html) ?? [];
        t.ok(fold, `${field}: ${message.source}`);
        t.match(
            refused.html,
            new RegExp(`<details class="part" open><summary>[^<]*</summary>(?:(?!</details>)[\\s\\S])*${message.source}`),
        );
        t.notMatch(refused.html, /hidden-word|BEGIN (?:EC )?PRIVATE/);
    }
    t.strictSame(await exporters.list(), []);
});

t.test('asks again for a secret that came with something wrong, and says beside the fold what excludes what', async (t) => {
    const { add } = await visited(t);
    const { leaf } = await identity();
    const both = await add({ ...OAUTH, ...PROXY, 'basic.username': 'u', 'basic.password': 'hidden-word', formatSecret: 'hidden-word' });
    t.equal(both.status, 400);
    t.match(both.html, /aria-label="OAuth 2"><small class="fault">Oauth and basic exclude each other/);
    t.notMatch(both.html, 'hidden-word');
    for (const name of ['basic.password', 'oauth.clientSecret', 'proxy.url', 'formatSecret']) {
        t.match(both.html, new RegExp(`name="${name}"[^>]* aria-describedby="${name}-said"`), name);
        t.match(both.html, `<input type="hidden" name="again" value="${name}">`, name);
        t.match(both.html, `name="giveUp" value="${name.split('.')[0]}">`, name);
        t.match(both.html, new RegExp(`id="${name}-said" class="fault">Enter it again`));
    }
    const key = await add({ ...OAUTH, 'clientCertificate.key': leaf.key });
    t.match(key.html, /name="again" value="clientCertificate.key"/);
    t.match(key.html, /value="https:\/\/tokens.example.com\/"/, 'what is no secret is kept');
});

t.test('saves a form without a secret that it asks for again once somebody leaves that part out, and not before', async (t) => {
    const { add, exporters, visitor } = await visited(t);
    const refused = await add({ 'basic.username': 'u', 'basic.password': 'hidden-word', formatSecret: 'hidden-word', url: 'ftp://x' });
    const url = 'https://example.com/';
    const silent = await visitor.send(refused, '/admin/exporters', { url });
    t.equal(silent.status, 400, 'who enters nothing again wants no password that is empty');
    t.match(silent.html, /id="formatSecret-said" class="fault">Enter it again, since a secret is not sent back, or leave it out/);
    t.match(silent.html, /name="basic.username" type="text" value="u"/);
    const half = await visitor.send(silent, '/admin/exporters', { url, giveUp: 'formatSecret' });
    t.equal(half.status, 400);
    t.match(half.html, /id="basic.password-said" class="fault">Enter it again, since/);
    t.strictSame(await exporters.list(), []);
    const saved = await visitor.send(half, '/admin/exporters', { url, giveUp: ['basic', 'formatSecret'] });
    t.match(saved.html, /The exporter was saved/);
    t.match(await exporters.list(), [{ authentication: [] }]);
});

t.test('shows nothing that was typed as markup', async (t) => {
    const { add } = await visited(t);
    const mark = '"><script>alert(1)</script></textarea><img src=x>';
    const names = ['basic.username', 'oauth.tokenUrl', 'oauth.clientId', 'oauth.scope', 'oauth.audience', 'oauth.authMethod', 'oauth.ca'];
    const others = ['clientCertificate.certificate', 'ca', 'proxy.url', 'proxy.ca', 'proxy.resolvesNames', 'rate', 'drop'];
    for (const name of [...names, ...others]) {
        const refused = await add({ url: 'ftp://x', [name]: mark });
        t.equal(refused.status, 400, name);
        t.notMatch(refused.html, /<script>|<img/, name);
    }
});
