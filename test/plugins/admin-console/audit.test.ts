import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryAudit } from '../../../adapters/memory/index.ts';
import { type AuditEntry, type AuditTrail, auditTrail } from '../../../lib/audit/audit-trail.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { AdminConsoleOptions } from '../../../plugins/admin-console/index.ts';
import { admin, host, investigation, receiver, register, systemOf } from './host.ts';
import { Visitor } from './visitor.ts';

const PREFIX = '/admin-console';

async function served(t: Test, options: (server: Server) => Partial<AdminConsoleOptions> = () => ({})) {
    const server = await host();
    const system = systemOf(server);
    await register(server, { system, screens: {}, ...options(server) });
    await server.initialize();
    t.teardown(() => server.stop());
    const ask = async (method: string, path: string, payload?: object, headers: Record<string, string> = admin) => {
        const answer = await server.inject({ method, url: PREFIX + path, headers, ...(payload && { payload }) });
        return { status: answer.statusCode, body: JSON.parse(answer.payload) };
    };
    return { server, system, ask, trail: () => system.audit.list() };
}

/** An entry without its id and its time. */
function told({ actor, operation, subject, outcome }: AuditEntry): readonly (string | null)[] {
    return [actor, operation, subject, outcome];
}

t.test('tells who has changed what, and what it came to, oldest last', async (t) => {
    const { ask, trail } = await served(t);
    const { id: key } = (await ask('POST', '/keys', { name: 'nightly' })).body;
    await ask('GET', `/keys/${key}`);
    await ask('GET', '/keys');
    await ask('DELETE', `/keys/${key}`);
    await ask('DELETE', '/keys/nothing');
    const { id } = (await ask('POST', '/exporters', { url: await receiver(t), headers: [['X-Key', 's3cret-value']] })).body;
    await ask('GET', `/exporters/${id}`);
    await ask('GET', `/exporters/${id}?showUrl=true`);
    await ask('POST', `/exporters/${id}/start`, {});
    t.equal((await ask('POST', '/events/idr_investigation_created', { body: investigation })).status, 200);
    const failedSince = '2026-01-01T00:00:00Z';
    await ask('POST', '/replays', { exporterId: id, failedSince, dryRun: true });
    const { id: replay } = (await ask('POST', '/replays', { exporterId: id, failedSince })).body;
    await ask('POST', '/hosts/remove', { workspace: 'default', address: '192.0.2.1', dryRun: true });
    await ask('POST', '/hosts/remove', { workspace: 'default', address: '192.0.2.1' });
    await ask('DELETE', '/workspaces/default');
    await ask('POST', '/license', { text: 's3cret' });
    await ask('POST', '/migrations', {});
    const entries = await trail();
    t.same(entries.map(told).reverse(), [
        ['ada', 'createKey', key, 'done'],
        ['ada', 'revealKey', key, 'done'],
        ['ada', 'revokeKey', key, 'done'],
        ['ada', 'revokeKey', 'nothing', 'NOT_FOUND'],
        ['ada', 'createExporter', id, 'done'],
        ['ada', 'showExporter', id, 'done'],
        ['ada', 'startExporter', id, 'done'],
        ['ada', 'beginReplay', replay, 'done'],
        ['ada', 'removeHosts', 'default', 'done'],
        ['ada', 'removeWorkspace', 'default', 'CONFLICT'],
        ['ada', 'installLicense', null, 'done'],
        ['ada', 'migrate', null, 'done'],
    ]);
    t.notMatch(JSON.stringify(entries), /s3cret|scw_/);
    const listed = await ask('GET', '/audit?operation=revokeKey&limit=1');
    t.match(listed.body, [{ subject: 'nothing', outcome: 'NOT_FOUND' }]);
    t.equal(listed.body.length, 1);
});

t.test('tells what a workspace was called before, and what it is called now', async (t) => {
    const { ask, trail, system } = await served(t);
    const long = 'n'.repeat(255);
    await system.inventory.importHosts('lab', (async function* () {})());
    await ask('POST', '/workspaces/lab/rename', { to: 'office' });
    await ask('POST', '/workspaces/office/rename', { to: long });
    await ask('POST', `/workspaces/${long}/rename`, { to: 'm'.repeat(255) });
    await ask('POST', '/workspaces/lab/rename', { to: 'other' });
    t.same((await trail()).map(told).reverse(), [
        ['ada', 'renameWorkspace', 'lab → office', 'done'],
        ['ada', 'renameWorkspace', `office → ${long}`, 'done'],
        ['ada', 'renameWorkspace', `${long} → ${'m'.repeat(255)}`, 'done'],
        ['ada', 'renameWorkspace', 'lab → other', 'NOT_FOUND'],
    ]);
});

t.test('tells nothing of who was not let in', async (t) => {
    const { ask, trail } = await served(t);
    t.equal((await ask('POST', '/keys', { name: 'x' }, { session: 'eve' })).status, 403);
    t.equal((await ask('POST', '/keys', { name: '' })).status, 400);
    t.same(await trail(), []);
});

t.test('does nothing that cannot be written into the trail, and makes the trail first', async (t) => {
    const away = new ScanwireError('UNAVAILABLE', 'The database cannot be reached');
    const record: AuditTrail['record'] = () => Promise.reject(away);
    let migrated = 0;
    const { ask, system } = await served(t, (server) => {
        const whole = systemOf(server);
        const migrate = async () => {
            migrated += 1;
            return [];
        };
        return { system: { ...whole, migrate, audit: { ...whole.audit, record } } };
    });
    t.match(await ask('POST', '/keys', { name: 'nightly' }), { status: 503, body: { error: { code: 'UNAVAILABLE' } } });
    t.same(await system.keys.list(), []);
    t.match(await ask('GET', '/keys'), { status: 200, body: [] });
    t.equal((await ask('POST', '/migrations', {})).status, 503);
    t.equal(migrated, 1);
});

t.test('does nothing for somebody without a name', async (t) => {
    let name: unknown = '';
    const { ask, trail } = await served(t, () => ({ actor: () => name as string }));
    for (name of ['', 7, undefined]) {
        t.match(await ask('POST', '/keys', { name: 'nightly' }), { body: { error: { code: 'MISCONFIGURED', field: 'actor' } } });
    }
    t.same(await trail(), []);
});

t.test('asks for who it is where there is a trail', async (t) => {
    const server = await host();
    const { audit } = systemOf(server);
    const actor = undefined;
    await t.rejects(register(server, { system: { audit }, actor }), { code: 'MISCONFIGURED', field: 'actor' });
    await register(server, { system: { keys: server.plugins['token-auth'] }, actor });
    const answer = await server.inject({ method: 'POST', url: `${PREFIX}/keys`, headers: admin, payload: { name: 'x' } });
    t.equal(answer.statusCode, 200, 'without a trail nobody is asked for');
});

t.test('shows the trail as a page, of pages too', async (t) => {
    let now = new Date('2026-11-21T09:30:00Z');
    const audit = auditTrail({ store: memoryAudit({ clock: () => now }), onError: (error) => t.fail(error.message) });
    const { server } = await served(t, (server) => ({ system: { ...systemOf(server), audit } }));
    const visitor = new Visitor(server);
    t.match((await visitor.get('/admin/audit')).html, /Nobody has done anything/);
    const keys = await visitor.get('/admin/keys');
    await visitor.send(keys, '/admin/keys', { name: '<b>nightly</b>' });
    const { html } = await visitor.get('/admin/audit');
    t.match(html, />ada<\/td><td[^>]*><code>createKey<\/code><\/td>\s*<td[^>]*><code>[0-9a-f-]{36}<\/code><\/td><td[^>]*>done<\/td>/);

    const hostile = '"><img src=x onerror=alert(1)>';
    now = new Date('2026-11-22T09:30:00Z');
    for (let times = 0; times < 51; times += 1) {
        await audit.record({ actor: hostile, operation: 'migrate', subject: hostile }, async () => {});
    }
    const first = await visitor.get(`/admin/audit?actor=${encodeURIComponent(hostile)}&since=2026-11-22T00:00`);
    t.notMatch(first.html, '<img');
    t.equal(first.html.match(/<th scope="row">/g)?.length, 50);
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.html) ?? [];
    const second = await visitor.get(next.replaceAll('&amp;', '&'));
    t.equal(second.html.match(/<th scope="row">/g)?.length, 1);
    t.match((await visitor.get('/admin/audit?operation=migrate&until=2026-11-22T00:00')).html, /Nobody has done anything/);
    const refused = await visitor.get('/admin/audit?since=yesterday');
    t.equal(refused.status, 400);
    t.match(refused.html, /role="alert" class="fault">[^<]*must be/);
});
