import t from 'tap';
import { ScanwireError } from '../../../lib/errors.ts';
import { diagnosis } from '../../../lib/webhooks/observing/doctor.ts';
import { found } from '../../../lib/webhooks/observing/finding.ts';
import { withApiKeys } from '../../../plugins/admin-console/api-keys-finding.ts';
import { OPERATOR } from '../../../plugins/admin-console/audit.ts';
import { handlersOf } from '../../../plugins/admin-console/handlers.ts';
import { host, systemOf } from './host.ts';

t.test('the doctor of the operations counts the API keys', async (t) => {
    const server = await host();
    await server.initialize();
    t.teardown(() => server.stop());
    const system = systemOf(server);
    const { keys } = system;
    const { diagnose, diagnoseExporter } = handlersOf(system, OPERATOR);
    const looked = async () => {
        const { findings } = await diagnose({});
        t.strictSame(
            findings.map(({ part }) => part),
            ['store', 'clock', 'keys', 'api keys', 'queue', 'workers', 'names', 'exporters'],
        );
        return findings[3];
    };
    t.match(await looked(), { state: 'ok', code: 'api_keys_none', advice: null });
    const { id } = await keys.create('gone');
    await keys.create('there');
    await keys.revoke(id);
    t.match(await looked(), {
        state: 'ok',
        code: 'api_keys_counted',
        values: ['1', '0'],
        text: 'API keys that can be used: 1; that have expired: 0',
    });

    const { exporter } = await system.webhooks.exporters.create({ url: 'http://127.0.0.1:9/' });
    t.match((await diagnoseExporter({ id: exporter.id })).findings[3], { part: 'api keys', state: 'ok' });
});

t.test('it warns where all have expired, and says that their store is away', async (t) => {
    const own = async () => diagnosis([found('keys', 'ok', 'keys_open')]);
    const key = { revokedAt: null, expired: true };
    const lookedAt = async (list: () => Promise<readonly object[]>) => await withApiKeys(own, { list: list as never })();
    t.match(await lookedAt(async () => [key, { ...key, expired: false }]), { findings: { 1: { state: 'ok', values: ['1', '1'] } } });
    t.match(await lookedAt(async () => [key, { ...key, revokedAt: new Date() }]), {
        healthy: true,
        findings: { 1: { part: 'api keys', state: 'warning', code: 'api_keys_expired', values: ['1'], advice: /scanwire keys create/ } },
    });
    const away = () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The database cannot be used now'));
    t.match(await lookedAt(away), {
        healthy: false,
        findings: { 1: { part: 'api keys', state: 'wrong', text: /cannot be looked up: The database cannot be used now/, advice: String } },
    });
    await t.rejects(
        lookedAt(() => Promise.reject(new TypeError('of its own'))),
        { message: 'of its own' },
    );
});

t.test('it does not look at them where the store of webhooks is away', async (t) => {
    const away = diagnosis([found('store', 'wrong', 'store_unusable', ['It', 'away'])]);
    const looked = await withApiKeys(async () => away, { list: () => Promise.reject(new Error('was asked')) })();
    t.same(looked, away);
});
