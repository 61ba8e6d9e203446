import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { testDatabase } from '../support/test-database.ts';

/** Where `import 'scanwire/…'` finds the built package, as it does for whoever installed it. */
const FOLDER = 'build/admin-console';

const [example = '', ...others] = [...readFileSync('docs/admin-console.md', 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(
    ([, block = '']) => block,
);

/** A host as the page presumes it: with a pool, with sessions, and with the plugins that are administered. */
const before = (url: string): string => `
    import { randomBytes } from 'node:crypto';
    import { unauthorized } from '@hapi/boom';
    import Hapi from '@hapi/hapi';
    import pg from 'pg';
    import { keyRing } from 'scanwire/keys';
    import { memoryApiKeys, memoryQueue, memoryWebhooks } from 'scanwire/memory';
    import { plugin as tokenAuth } from 'scanwire/token-auth';
    import { plugin as webhookExporter } from 'scanwire/webhook-exporter';

    const pool = new pg.Pool({ connectionString: ${JSON.stringify(url)} });
    const server = Hapi.server();
    server.auth.scheme('session', () => ({
        authenticate: ({ headers }, h) =>
            headers.session ? h.authenticated({ credentials: { scope: [headers.session], user: 'ada' } }) : h.unauthenticated(unauthorized()),
    }));
    server.auth.strategy('session', 'session');
    const sealing = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    await server.register([
        { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: sealing } },
        { plugin: webhookExporter, options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing } },
    ]);
`;

const after = `
    const answers = [];
    for (const [session, method, path, type, payload] of [
        ['', 'GET', '/keys'],
        ['guest', 'GET', '/keys'],
        ['admin', 'POST', '/migrations', 'application/json', '{}'],
        ['admin', 'POST', '/keys', 'application/json', '{"name":"nightly job"}'],
        ['admin', 'POST', '/import?workspace=lab', 'application/x-ndjson', '{"address":"192.0.2.1"}'],
        ['admin', 'GET', '/exporters'],
        ['admin', 'GET', '/license'],
        ['admin', 'GET', '/audit'],
    ]) {
        const headers = { session, ...(type && { 'content-type': type }) };
        const { statusCode } = await server.inject({ method, url: '/admin-console' + path, headers, payload });
        answers.push(statusCode);
    }

    await pool.end();
    process.stdout.write(JSON.stringify(answers));
`;

t.test('runs the example of the page', async (t) => {
    t.equal(others.length, 0, 'every block of the page is run here');
    const { url, drop } = await testDatabase();
    t.after(drop);
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(`${FOLDER}/host.mjs`, before(url) + example + after);
    const child = spawn(process.execPath, [`${FOLDER}/host.mjs`], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.same(JSON.parse(await text(child.stdout)), [401, 403, 200, 200, 200, 200, 404, 200]);
});
