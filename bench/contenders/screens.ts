import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { plugin as adminConsole, auditTrail } from 'scanwire/admin-console';
import { keyRing } from 'scanwire/keys';
import { memoryQueue } from 'scanwire/memory';
import { migrate, postgresStores } from 'scanwire/postgres';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';

/** The screens of a host that has so many exporters. Exporters have ten owners, one of whom has screens of his own. Prints its port. */
const [url = '', count = '0'] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 10 });
await migrate(pool);
const { apiKeys, webhooks, audit } = postgresStores({ pool });
const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
const server = hapiServer({ host: '127.0.0.1', port: 0 });
server.auth.scheme('anybody', () => ({ authenticate: (_, h) => h.authenticated({ credentials: { user: { name: 'ada' } } }) }));
server.auth.strategy('anybody', 'anybody');
await server.register([
    { plugin: tokenAuth, options: { store: apiKeys, keyRing: ring } },
    // Nothing is sent, so that nothing but pages is measured.
    {
        plugin: webhookExporter,
        options: { stores: webhooks, queue: memoryQueue(), keyRing: ring, egress: { allow: ['127.0.0.0/8'] }, collectors: [] },
    },
]);
const { exporters } = server.plugins['webhook-exporter'];
for (let number = 1; number <= Number(count); number += 1) {
    await exporters.create({ url: `http://127.0.0.1:9/${number}`, name: `exporter ${number}`, owner: `owner ${number % 10}` });
}

const trail = auditTrail({ store: audit, onError: (error) => process.stderr.write(`${error.message}\n`) });
const asked = { auth: 'anybody', authorize: () => true, actor: () => 'ada', routes: false };
await server.register({
    plugin: adminConsole,
    options: {
        ...asked,
        system: { keys: server.plugins['token-auth'], webhooks: server.plugins['webhook-exporter'], audit: trail },
        screens: {},
    },
});
await server.register({
    plugin: adminConsole,
    options: {
        ...asked,
        instance: 'customers',
        system: { webhooks: server.plugins['webhook-exporter'], audit: trail },
        owner: () => 'owner 1',
        screens: { prefix: '/webhooks' },
    },
});
await server.start();
process.stdout.write(`${server.info.port}\n`);
