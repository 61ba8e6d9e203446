import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryApiKeys } from '../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { apiKeys } from '../../../lib/keys/api-keys.ts';
import { SCOPES } from '../../../lib/keys/scopes.ts';
import { host, register, systemOf } from './host.ts';
import { fieldsOf, Visitor } from './visitor.ts';

/** A host with screens, and somebody who may use them. */
async function visited(t: Test, screens: object = {}): Promise<{ server: Server; visitor: Visitor }> {
    const server = await host();
    await register(server, { system: systemOf(server), screens });
    await server.initialize();
    t.teardown(() => server.stop());
    return { server, visitor: new Visitor(server) };
}

t.test('makes a key, shows it by a click and revokes it', async (t) => {
    const { server, visitor } = await visited(t);
    t.equal((await visitor.get('/admin')).path, '/admin/overview', 'the first page is shown');
    const empty = await visitor.get('/admin/keys');
    t.match(empty.html, /There is no key yet/);
    t.match(empty.html, 'Programs send a key in the HTTP header <code>token</code>.');
    t.match(empty.html, /without them it has the scope inventory:read, all workspaces, and never expires\./);
    t.match(empty.html, /<label>Name <small>\(required\)<\/small>\s*<input [^>]*required/);
    const opens = [
        ...empty.html.matchAll(
            /value="([a-z:]+)" aria-describedby="\1-opens"[^>]*> \1<\/label><small id="\1-opens">[A-Z][^<]+\.<\/small>/g,
        ),
    ];
    t.same(
        opens.map(([, scope]) => scope),
        SCOPES,
        'what each scope opens is said beside it',
    );

    const made = await visitor.send(empty, '/admin/keys', { name: 'nightly job', scopes: ['inventory:read', 'admin'], workspaces: '1, 2' });
    t.equal(made.status, 201);
    const [, key] = /id="shown-key"[^>]*>(scw_\w+)</.exec(made.html) ?? [];
    t.ok(key, 'the full key is shown');
    t.match(made.html, /to see it again, click its beginning in the list below/);
    const [summary] = await server.plugins['token-auth'].list();
    t.match(summary, { name: 'nightly job', scopes: ['inventory:read', 'admin'], workspaces: [1, 2], expiresAt: null });
    t.equal((await server.plugins['token-auth'].reveal(String(summary?.id))).key, key);

    const list = await visitor.get('/admin/keys');
    t.notMatch(list.html, String(key), 'nobody sees it who has not asked');
    t.match(list.html, `${summary?.start}••••••••`);
    const shown = await visitor.send(list, `/admin/keys/${summary?.id}/reveal`);
    t.match(shown.html, String(key));
    t.equal((await visitor.get(`/admin/keys/${summary?.id}/reveal`)).path, '/admin/keys', 'loading it again shows the list');

    const revoked = await visitor.send(list, `/admin/keys/${summary?.id}/revoke`);
    t.match(revoked.html, /role="status">The key was revoked/);
    t.ok((await server.plugins['token-auth'].list())[0]?.revokedAt);
    t.notMatch(revoked.html, /\/reveal"/, 'there is nothing to show any more');
    const again = await visitor.send(list, `/admin/keys/${summary?.id}/revoke`);
    t.equal(again.status, 409);
    t.match(again.html, /Cannot revoke the key: it is revoked already/);
});

t.test('says when a key was used last, and that somebody has looked at it', async (t) => {
    const { server, visitor } = await visited(t);
    server.route({ method: 'GET', path: '/asked', options: { auth: 'token' }, handler: () => 'ok' });
    const { id, key } = await server.plugins['token-auth'].create('nightly');
    const used = async (): Promise<string | undefined> =>
        /<td data-label="Last used">([\s\S]*?)<\/td>/.exec((await visitor.get('/admin/keys')).html)?.[1];
    t.equal(await used(), 'never');
    t.equal((await server.inject({ url: '/asked', headers: { token: key } })).statusCode, 200);
    await until(async () => /^<time datetime="/.test(String(await used())));
    await visitor.send(await visitor.get('/admin/keys'), `/admin/keys/${id}/reveal`);
    t.match(
        (await visitor.get('/admin/audit')).html,
        new RegExp(`>ada</td>[^\n]*<code>revealKey</code></td>\\s*<td[^>]*><code>${id}</code>`),
    );
});

t.test('shows a key that is not kept sealed once, and offers no click for it', async (t) => {
    const server = await host();
    const hashed = apiKeys({ store: memoryApiKeys(), revealable: false });
    await register(server, { system: { ...systemOf(server), keys: hashed }, screens: {} });
    const visitor = new Visitor(server);
    const made = await visitor.send(await visitor.get('/admin/keys'), '/admin/keys', { name: 'nightly' });
    t.match(made.html, /id="shown-key" class="key">scw_\w+<[\s\S]*<strong>Keep it now: it cannot be shown again\./);
    const { html } = await visitor.get('/admin/keys');
    t.match(html, /<td data-label="Token">scw_\w+••••••••<\/td>/);
    t.notMatch(html, /\/reveal"|shown-key/);
});

t.test('says beside the field what is wrong, and keeps what was typed', async (t) => {
    const { visitor } = await visited(t);
    const page = await visitor.get('/admin/keys');
    const cases: readonly [Record<string, string | null>, string, RegExp][] = [
        [{ name: '  ' }, 'name', /name is not allowed to be empty/],
        [{ name: 'kept', workspaces: 'all of them' }, 'workspaces', /workspaces\[0\] must be a number/],
        [{ name: 'kept', expiresAt: '2001-01-01' }, 'expiresAt', /expiresAt must be in the future/],
        [{ name: 'kept', scopes: 'everything' }, 'scopes', /scopes\[0\] must be one of/],
    ];
    for (const [fields, field, message] of cases) {
        const refused = await visitor.send(page, '/admin/keys', fields);
        t.equal(refused.status, 400, field);
        t.match(refused.html, new RegExp(`<small id="${field}-said" class="fault">${message.source}`));
        t.match(fieldsOf(refused.html, '/admin/keys'), [
            ['formToken', /./],
            ['name', fields.name],
        ]);
    }
});

t.test('shows nothing as markup that somebody has typed', async (t) => {
    const { server, visitor } = await visited(t);
    const names = [
        '<script>alert(1)</script>',
        '"><img src=x onerror=alert(1)>',
        "' autofocus onfocus='alert(1)",
        '{{ t.product }}{% raw %}',
        '</title><svg onload=alert(1)>',
        '% $& %',
    ];
    for (const name of names) {
        await server.plugins['token-auth'].create(name);
    }
    const list = await visitor.get('/admin/keys');
    t.notMatch(list.html, /<script>|<img|<svg|autofocus onfocus='/);
    t.match(list.html, '&lt;script&gt;alert(1)&lt;/script&gt;');
    t.match(list.html, '{{ t.product }}{% raw %}');
    for (const name of [...names, `"><b>\u0000`]) {
        const page = await visitor.send(list, '/admin/keys', { name });
        t.notMatch(page.html, /<script>|<img|<svg|<b>/);
    }
    const nowhere = await visitor.get('/admin/keys?revoked=<script>');
    t.notMatch(nowhere.html, '<script>');
});

t.test('takes a form only from a page of its own', async (t) => {
    const { server, visitor } = await visited(t);
    const page = await visitor.get('/admin/keys');
    const own = new URLSearchParams([...fieldsOf(page.html, '/admin/keys').filter(([name]) => name === 'formToken'), ['name', 'mine']]);
    const { id } = await server.plugins['token-auth'].create('another');
    const cases: readonly [string, string, string, Record<string, string>][] = [
        ['without its token', '/admin/keys', 'name=mine', {}],
        ['with a token of another form', `/admin/keys/${id}/revoke`, own.toString(), {}],
        ['with a token that is none', '/admin/keys', 'name=mine&formToken=ä', {}],
        ['from another site', '/admin/keys', own.toString(), { 'sec-fetch-site': 'cross-site' }],
        ['from a site beside it', '/admin/keys', own.toString(), { 'sec-fetch-site': 'same-site' }],
        ['from an address that was typed', '/admin/keys', own.toString(), { 'sec-fetch-site': 'none' }],
        ['without the cookie of its browser', '/admin/keys', own.toString(), { cookie: '' }],
        ['with a cookie that is none', '/admin/keys', own.toString(), { cookie: 'scanwire-forms=x' }],
    ];
    for (const [title, path, body, headers] of cases) {
        const refused = await visitor.post(path, body, headers);
        t.equal(refused.status, 403, title);
        t.match(refused.html, /does not come from this page/);
    }
    t.equal((await server.plugins['token-auth'].list()).length, 1, 'none of it did anything');

    const old = { method: 'POST', url: '/admin/keys', payload: own.toString() } as const;
    const [cookie = ''] = [(await server.inject({ url: '/admin/keys', headers: { session: 'ada' } })).headers['set-cookie']].flat();
    const secret = cookie.split(';')[0] ?? '';
    const fresh = await server.inject({ url: '/admin/keys', headers: { session: 'ada', cookie: secret } });
    const [[, token] = ['', '']] = fieldsOf(fresh.payload, '/admin/keys');
    const ask = async (origin: Record<string, string>): Promise<number> => {
        const headers = {
            session: 'ada',
            cookie: secret,
            host: 'here.example',
            'content-type': 'application/x-www-form-urlencoded',
            ...origin,
        };
        return (
            await server.inject({
                ...old,
                headers,
                payload: new URLSearchParams({ formToken: token, name: 'old', scopes: 'admin' }).toString(),
            })
        ).statusCode;
    };
    t.equal(await ask({ origin: 'http://here.example' }), 201, 'a browser that says the origin only');
    t.equal(await ask({ origin: 'http://there.example' }), 403);
    t.equal(await ask({ origin: 'null' }), 403);
    t.equal(await ask({}), 403, 'one that says nothing');
});

t.test('takes nothing but forms, and not long ones', async (t) => {
    const { visitor } = await visited(t);
    for (const [body, type] of [
        ['{}', 'application/json'],
        ['name=x', 'text/plain'],
        [`name=${'x'.repeat(1024 * 1024)}`, 'application/x-www-form-urlencoded'],
    ] as const) {
        const refused = await visitor.post('/admin/keys', body, { 'content-type': type });
        t.equal(refused.status, 400);
        t.match(refused.html, /What was sent is no form, or is too long/);
    }
});

t.test('lets in whom the host lets in, and tells every browser what it must not do', async (t) => {
    const { server } = await visited(t);
    const stranger = await server.inject('/admin/keys');
    t.equal(stranger.statusCode, 401, 'the strategy of the host answers');
    const reader = await server.inject({ url: '/admin/keys', headers: { session: 'eve' } });
    t.equal(reader.statusCode, 403);
    t.match(reader.payload, /Access needs the rights of an administrator/);
    const page = await server.inject({ url: '/admin/keys', headers: { session: 'ada' } });
    for (const { headers } of [stranger, reader, page]) {
        t.match(headers['content-security-policy'], /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/);
        t.match(headers, { 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin', 'cache-control': 'no-store' });
    }
    t.match(page.headers['set-cookie'], [/^scanwire-forms=[\w-]{43}; HttpOnly; SameSite=Lax; Path=\/admin$/]);
    t.notMatch(page.payload, /<script(?! src)|<style|\son\w+=|\sstyle=/, 'no code and no style stands in the page');

    const broken = await host();
    await register(broken, {
        system: systemOf(broken),
        screens: {},
        authorize() {
            throw new Error('the store of sessions is away');
        },
    });
    t.equal((await broken.inject({ url: '/admin/keys', headers: { session: 'ada' } })).statusCode, 403);
});

t.test('serves what its pages load, to be asked for again only when it changes', async (t) => {
    const { server } = await visited(t, { prefix: '/settings/scans', frameAncestors: "'self' https://portal.example", secure: true });
    const page = await server.inject({ url: '/settings/scans/keys', headers: { session: 'ada' } });
    t.match(page.headers['content-security-policy'], /frame-ancestors 'self' https:\/\/portal\.example$/);
    t.match(page.headers['set-cookie'], [/; Secure; .*Path=\/settings\/scans$/]);
    const files = Array.from(page.payload.matchAll(/(?:href|src)="([^"]+\.(?:css|js))"/g), ([, file = '']) => file);
    t.equal(files.length, 4);
    for (const url of files) {
        const file = await server.inject(url);
        t.equal(file.statusCode, 200, url);
        t.match(file.headers['content-type'], url.endsWith('css') ? /^text\/css/ : /^text\/javascript/);
        t.equal((await server.inject({ url, headers: { 'if-none-match': file.headers.etag ?? '' } })).statusCode, 304);
    }
});

t.test('answers with a page when the store fails, and says no more of it than that', async (t) => {
    const server = await host();
    const { keys } = systemOf(server);
    const list = async (): Promise<never> => {
        throw new Error('secret of the host');
    };
    await register(server, { system: { keys: { ...keys, list } }, screens: { prefix: '' } });
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { error, data }) => logged.push(error ?? data));
    const page = await server.inject({ url: '/keys', headers: { session: 'ada' } });
    t.equal(page.statusCode, 500);
    t.match(page.payload, /The server failed; its log says why/);
    t.notMatch(page.payload, /secret of the host/);
    t.match(logged, [{ message: 'secret of the host' }]);
});

t.test('answers with a page when a key cannot be made, since the store is away', async (t) => {
    const server = await host();
    const { keys } = systemOf(server);
    const create = async (): Promise<never> => {
        throw new ScanwireError('UNAVAILABLE', 'The database cannot be used now');
    };
    await register(server, { system: { keys: { ...keys, create } }, screens: {} });
    const visitor = new Visitor(server);
    const page = await visitor.send(await visitor.get('/admin/keys'), '/admin/keys', { name: 'nightly job' });
    t.equal(page.status, 503);
    t.match(page.html, /The database cannot be used now/);
});
