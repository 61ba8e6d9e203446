import { readFileSync } from 'node:fs';
import t from 'tap';
import type { AdminConsoleOptions } from '../../../plugins/admin-console/index.ts';
import { endpoints } from '../../../plugins/admin-console/operations.ts';
import { admin, host, register, systemOf } from './host.ts';

t.test('refuses options that cannot work and names the option', async (t) => {
    const cases: readonly [Record<string, unknown>, string][] = [
        [{ authorize: undefined }, 'authorize'],
        [{ authorize: 'admin' }, 'authorize'],
        [{ auth: undefined }, 'auth'],
        [{ auth: true }, 'auth'],
        [{ auth: 'nobody knows it' }, 'auth'],
        [{ system: undefined }, 'system'],
        [{ system: {} }, 'system'],
        [{ system: { keys: {} } }, 'system.keys'],
        [{ system: { webhooks: { publish() {} } } }, 'system.webhooks.exporters'],
        [{ system: { inventory: {} } }, 'system.inventory'],
        [{ system: { license: {} } }, 'system.license'],
        [{ system: { migrate: true } }, 'system.migrate'],
        [{ prefix: 'admin' }, 'prefix'],
        [{ prefix: '/admin/' }, 'prefix'],
        [{ auth: false, screens: {} }, 'screens'],
        [{ screens: { prefix: 'admin' } }, 'screens.prefix'],
        [{ screens: { frameAncestors: "'self'; script-src *" } }, 'screens.frameAncestors'],
    ];
    for (const [change, field] of cases) {
        const server = await host();
        const options = { system: systemOf(server), ...change } as Partial<AdminConsoleOptions>;
        await t.rejects(register(server, options), { code: 'MISCONFIGURED', field, message: /^admin-console options: / }, field);
    }
});

t.test('refuses to run behind a key of the REST API, whatever its strategy is called', async (t) => {
    for (const auth of ['token', 'operators']) {
        const server = await host();
        server.auth.strategy('operators', 'token');
        await t.rejects(register(server, { system: systemOf(server), auth }), {
            code: 'MISCONFIGURED',
            field: 'auth',
            message: /a key of the REST API is never enough/,
        });
    }
});

t.test('has routes for the parts of the system that are there, below its prefix', async (t) => {
    const parts: readonly [string, readonly string[]][] = [
        ['keys', ['createKey', 'listKeys', 'revealKey', 'revokeKey', 'rotateKeyRing']],
        [
            'inventory',
            [
                'importScan',
                'exportWorkspace',
                'listWorkspaces',
                'showWorkspace',
                'listHosts',
                'showHost',
                'expireHosts',
                'removeHosts',
                'removeWorkspace',
                'moveHosts',
                'updateWorkspace',
                'renameWorkspace',
            ],
        ],
        ['license', ['showLicense', 'installLicense', 'trustLicense']],
        ['migrate', ['migrate']],
    ];
    for (const [part, operations] of parts) {
        const server = await host();
        const before = server.table().length;
        const { [part as 'keys']: only } = systemOf(server);
        await register(server, { system: { [part]: only }, prefix: '/a/b' });
        const expected = operations.map((name) => `/a/b${endpoints[name as 'createKey'].path}`);
        t.equal(server.table().length - before, operations.length);
        t.same(
            operations.map((name) => server.lookup(`admin-console.${name}`)?.path),
            expected,
        );
    }

    const server = await host();
    const { license } = systemOf(server);
    await register(server, { system: { license: { inspect: license.inspect } } });
    t.equal(server.lookup('admin-console.installLicense'), null, 'a licence that cannot be replaced');
    t.equal((await server.inject({ url: '/admin-console/license', headers: admin })).statusCode, 200);
});

t.test('works at the root and without a strategy, where authorize finds out by itself', async (t) => {
    const server = await host();
    await register(server, {
        system: systemOf(server),
        prefix: '',
        auth: false,
        authorize: ({ headers }) => headers.door === 'open',
        actor: () => 'the doorman',
    });
    t.equal((await server.inject({ url: '/keys', headers: { door: 'open' } })).statusCode, 200);
    t.equal((await server.inject('/keys')).statusCode, 403);
});

t.test('docs/admin-console.md has every operation with its route', async (t) => {
    const page = readFileSync(new URL('../../../../docs/admin-console.md', import.meta.url), 'utf8');
    const documented = Array.from(page.matchAll(/^\| `(\w+)` +\| `([A-Z]+) (\/\S+)` +\|/gm), ([, name, method, path]) => [
        name,
        { method, path },
    ]);
    const known = Object.entries(endpoints).map(([name, { method, path }]) => [name, { method, path }]);
    t.same(documented, known);
});
