import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { openEmbeddedDatabase } from '../../adapters/pglite/index.ts';
import { instrumentation } from '../support/instrumentation.ts';
import { ended } from '../support/scanwire.ts';
import { fixture, get, json, serveIn, usedDataOf } from '../support/served.ts';

/** A receiver that keeps the headers of what it gets. */
async function receiverOf(t: Test) {
    const got: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
        got.push(request.headers);
        request.resume();
        response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/`, env: { SCANWIRE_EGRESS_ALLOW: `127.0.0.1:${port}` }, got };
}

async function publish(data: string): Promise<void> {
    await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json'));
}

const ofInvestigations = (got: readonly IncomingHttpHeaders[]): readonly IncomingHttpHeaders[] =>
    got.filter((headers) => headers['x-vendor-event'] === 'idr_investigation_created');

t.test('records spans by the SDK of NODE_OPTIONS, and sends traceparent, with --tracing send', async (t) => {
    const { url, env, got } = await receiverOf(t);
    const data = await usedDataOf(t);
    const { NODE_OPTIONS, spans } = instrumentation(dirname(data));
    await serveIn(t, { ...env, NODE_OPTIONS }, data, '--tracing', 'send');
    await json(data, 'exporters', 'create', '--url', url, '--start');
    await publish(data);
    const named = (name: string) => spans().find((span) => span.name === name)?.traceId;
    await until(() => named('process idr_investigation_created') !== undefined);
    const trace = named('publish idr_investigation_created');
    t.match(trace, /^[0-9a-f]{32}$/);
    t.equal(named('POST'), trace);
    t.equal(named('process idr_investigation_created'), trace);
    t.match(ofInvestigations(got)[0]?.traceparent, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
});

t.test('removes deliveries that ended longer ago than --keep-for', async (t) => {
    const { url, env, got } = await receiverOf(t);
    const data = await usedDataOf(t);
    const before = await serveIn(t, env, data);
    await json(data, 'exporters', 'create', '--url', url, '--start');
    await publish(data);
    await publish(data);
    const listed = () => json<readonly { id: string; state: string }[]>(data, 'deliveries', 'list', '--kind', 'idr_investigation_created');
    await until(async () => (await listed()).every(({ state }) => state === 'delivered'));
    t.equal(ofInvestigations(got)[0]?.traceparent, undefined, 'without --tracing nothing is traced');
    const [kept, old] = await listed();
    t.equal(await ended(before.server, 'SIGTERM'), 0);

    const database = await openEmbeddedDatabase({ folder: data });
    // With all that was stored before it, and nothing noted of how old that is.
    await database.query(
        `with old as (
            update scanwire.deliveries set finished_at = scanwire.now() - interval '2 days', accepted_at = scanwire.now() - interval '2 days'
            where seq <= (select seq from scanwire.deliveries where id = $1)
            returning event_id
        )
        update scanwire.events set created_at = scanwire.now() - interval '2 days' where id in (select event_id from old)`,
        [old?.id],
    );
    await database.query('delete from scanwire.event_pages');
    await database.query(`update scanwire.retention set begun_at = '-infinity'`);
    await database.end();

    await serveIn(t, env, data, '--keep-for', '1d');
    await until(async () => (await listed()).length === 1);
    t.equal((await listed())[0]?.id, kept?.id);
    t.equal((await json<readonly unknown[]>(data, 'deliveries', 'list')).length, 1, 'nor is the test of its start kept');
});

t.test('sends no more indexes at once than --max-streams, and describes the API to whom --openapi says', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serveIn(t, {}, data, '--max-streams', '1', '--openapi', 'public');
    const scan = join(dirname(data), 'hosts.jsonl');
    const hosts = Array.from({ length: 20_000 }, (_, index) => ({
        address: `10.0.${index >> 8}.${index & 255}`,
        comments: 'c'.repeat(500),
    }));
    writeFileSync(scan, hosts.map((host) => `${JSON.stringify(host)}\n`).join(''));
    await json(data, 'import', scan);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'reader');
    t.equal((await get(served, '/rest_api/v2/openapi.json', '')).status, 200, 'without a key');

    // 20 MB that nobody reads do not fit into what lies between.
    const ca = readFileSync(served.certificate);
    const reader = request(`${served.url}/rest_api/v2/workspaces/1/hosts`, { ca, headers: { token: key }, agent: false }).end();
    const [answer] = await once(reader, 'response');
    t.equal(answer.statusCode, 200);
    t.equal((await get(served, '/rest_api/v2/workspaces/1/hosts', key)).status, 503);
    reader.destroy();
    t.equal(await ended(server, 'SIGTERM'), 0);

    const closed = await serveIn(t, {}, data, '--openapi', 'off');
    t.equal((await get(closed.served, '/rest_api/v2/openapi.json', key)).status, 404);
    t.equal((await get(closed.served, '/api-docs', key)).status, 404);
    t.equal((await get(closed.served, '/rest_api/v2/workspaces/1/hosts', key)).status, 200);
});
