import { readFileSync } from 'node:fs';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import { fixture, json, said, serveIn, usedDataOf } from '../../support/served.ts';
import { admin, host, register, systemOf } from './host.ts';

const KIND = 'idr_investigation_created';
const FILE = fixture('events/investigation.json');
const EVENTS = 5;
const NOBODY = 'http://127.0.0.1:9/';

interface Replayed {
    readonly id: string;
    readonly state: string;
    readonly done: number;
    readonly finishedAt: string | null;
}

t.test('ends a replay that is running, by the admin API', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    await register(server, { system: systemOf(server) });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const { exporters, deliveries, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: NOBODY });
    await exporters.start(exporter.id);
    for (let number = 0; number < EVENTS; number += 1) {
        await publish(KIND, JSON.parse(readFileSync(FILE, 'utf8')) as InvestigationCreated);
    }
    await until(async () => (await deliveries.list({ kind: KIND })).every(({ attempts }) => attempts > 0));
    const ask = async (path: string, payload: object): Promise<Replayed> =>
        JSON.parse((await server.inject({ method: 'POST', url: `/admin-console${path}`, headers: admin, payload })).payload) as Replayed;
    const begun = await ask('/replays', { exporterId: exporter.id, failedSince: '2026-01-01T00:00:00Z', rate: 1 });
    t.match(begun, { state: 'running', total: EVENTS });
    const cancelled = await ask(`/replays/${begun.id}/cancel`, {});
    t.match(cancelled, { id: begun.id, state: 'cancelled', finishedAt: String });
    t.ok(cancelled.done < EVENTS, `${cancelled.done} were replayed by then`);
    t.match(await deliveries.replays.list(), [{ id: begun.id, state: 'cancelled', done: cancelled.done }], 'and none since');
    const shown = await server.inject({ url: `/admin-console/replays/${begun.id}`, headers: admin });
    t.strictSame(JSON.parse(shown.payload), cancelled);
    const unknown = await server.inject({ url: `/admin-console/replays/${exporter.id}`, headers: admin });
    t.equal(unknown.statusCode, 404);
    t.match(JSON.parse(unknown.payload), { error: { code: 'NOT_FOUND', message: /replay/ } });
});

t.test('ends a replay that is running, by the command line', async (t) => {
    const data = await usedDataOf(t);
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.1:9' }, data);
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', NOBODY, '--start');
    for (let number = 0; number < EVENTS; number += 1) {
        await json(data, 'events', 'publish', KIND, FILE);
    }
    const tried = () => json<{ attempts: number }[]>(data, 'deliveries', 'list', '--kind', KIND);
    await until(async () => (await tried()).every(({ attempts }) => attempts > 0));
    const begun = await json<Replayed>(data, 'deliveries', 'replay', '--exporter', id, '--failed-since', '1h', '--rate', '1/s');
    t.match(begun, { state: 'running', total: EVENTS });
    t.match(await json(data, 'deliveries', 'replays', begun.id), { id: begun.id, state: 'running' });
    const cancelled = await json<Replayed>(data, 'deliveries', 'replay', '--cancel', begun.id);
    t.match(cancelled, { id: begun.id, state: 'cancelled', finishedAt: String });
    t.ok(cancelled.done < EVENTS);
    t.match(await json(data, 'deliveries', 'replays'), [{ id: begun.id, state: 'cancelled', done: cancelled.done }]);
    t.match(await json(data, 'deliveries', 'replays', begun.id), { id: begun.id, state: 'cancelled', done: cancelled.done });
    t.match(await said(['deliveries', 'replays', begun.id, '--data', data]), {
        code: 0,
        stdout: /^Id +[-0-9a-f]{36}\nExporter +[-0-9a-f]{36}\nOf +failed since .*\nRate +1\/s\nDone +\d of 5\nState +cancelled\nBegun .*\nFinished .*\n$/,
    });
    t.match(await said(['deliveries', 'replays', id, '--data', data]), { code: 1, stderr: /^scanwire: Unknown replay/ });
});
