import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, serveIn } from '../support/served.ts';
import { testDatabase } from '../support/test-database.ts';

// Many commands, each a process.
t.setTimeout(240_000);

const TOKEN = /T0KEN/i;
const PATH = '/in/p4thT0KEN/?key=qu3ryT0KEN';

/** Repeats what it was called by, as a hostile or a talkative receiver does. */
async function receiver(t: Test, answer: (response: ServerResponse, url: string) => void) {
    const called: (string | undefined)[] = [];
    const server = createServer((request, response) => {
        called.push(request.url);
        request.resume().on('end', () => answer(response, request.url ?? ''));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`, called };
}

/** Every row of every table of the database, as text. */
async function everythingIn(url: string): Promise<string> {
    const client = new pg.Client(url);
    await client.connect();
    try {
        const { rows: tables } = await client.query<{ name: string }>(
            `select format('%I.%I', schemaname, tablename) as name from pg_catalog.pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
        );
        const texts = [];
        for (const { name } of tables) {
            texts.push(name, ...(await client.query<{ row: string }>(`select x::text as row from ${name} x`)).rows.map(({ row }) => row));
        }
        return texts.join('\n');
    } finally {
        await client.end();
    }
}

t.test('stores, logs, lists and answers nothing of what a URL has after its host', async (t) => {
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const data = dataOf(t);
    const { server } = await serveIn(t, { DATABASE_URL: database.url, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' }, data);
    let said = '';
    for (const stream of [server.stdout, server.stderr]) {
        stream?.on('data', (text) => {
            said += text;
        });
    }
    const run = async (...args: string[]): Promise<string> => {
        const { stdout, stderr } = await scanwire([...args, '--data', data]);
        said += stdout + stderr;
        return stdout;
    };
    const idOf = (text: string): string => (JSON.parse(text) as { id: string }).id;

    const redirecting = await receiver(t, (response, url) => response.writeHead(302, 'no T0KEN', { location: url, 'x-url': url }).end(url));
    const breaking = await receiver(t, (response) => response.destroy());
    const gone = await receiver(t, (response, url) => response.writeHead(410).end(url));
    const ids = [];
    for (const { url } of [redirecting, breaking, gone, gone]) {
        ids.push(idOf(await run('exporters', 'create', '--url', url, '--start', '--json')));
    }
    t.match(said, /"same_url"/);
    await run('events', 'publish', 'idr_investigation_created', fixture('events/investigation.json'));
    await until(async () => /stopped.*\n.*stopped/.test(await run('exporters', 'list')));
    const [first = ''] = ids;
    for (const json of [[], ['--json']]) {
        for (const args of [
            ['deliveries', 'list'],
            ['exporters', 'test', first],
            ['exporters', 'stop', first],
            ['exporters', 'update', first, '--url', `${redirecting.url}&more=T0KEN`],
            ['exporters', 'update', first, '--url', `http://10.0.0.1${PATH}`],
            ['exporters', 'update', first, '--url', `gopher://10.0.0.1${PATH}`],
        ]) {
            await run(...args, ...json);
        }
        await Promise.all(ids.map((id) => run('exporters', 'show', id, ...json)));
    }
    const deliveries = JSON.parse(await run('deliveries', 'list', '--limit', '9', '--json')) as { id: string; lastCode: string }[];
    for (const { id } of deliveries) {
        await run('deliveries', 'show', id, '--json');
    }
    const refused = deliveries.find(({ lastCode }) => lastCode === 'gone')?.id ?? '';
    t.match(await run('deliveries', 'show', refused), /\n\nThe receiver answered to attempt 1:\n {2}\*\*\*\n$/, 'repeated and masked');

    t.match(said, /^\S+Z Exporter \S+ of collector default was stopped: The receiver answered 410 Gone$/m, 'the log of the server');
    t.notMatch(said, TOKEN);
    const stored = await everythingIn(database.url);
    t.match(stored, first, 'all was looked at');
    t.notMatch(stored, TOKEN);
    t.ok(
        [redirecting, breaking, gone].every(({ called }) => called.includes(PATH)),
        'they were called by the whole URL',
    );
    const shown = await scanwire(['exporters', 'show', first, '--show-url', '--data', data]);
    t.match(shown.stdout, `${redirecting.url}&more=T0KEN`, 'shown where it is asked for');
});
