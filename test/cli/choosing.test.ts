import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { fixture, json, usedDataOf } from '../support/served.ts';

const KIND = 'idr_investigation_created';
const BODY = fixture('events/investigation.json');
/** Nobody listens there. */
const RECEIVER = '127.0.0.1:18099';

t.test('says who gets an event and why not, and what would be sent, with nothing secret', async (t) => {
    const data = await served(t);
    const filter = join(t.testdir({}), 'filter.json');
    await writeFile(filter, JSON.stringify({ all: [{ path: 'title', op: 'contains', value: 'no such words' }] }));
    const url = ['--url', `http://${RECEIVER}/in`, '--header', 'Authorization: Bearer hunter2'];
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', ...url, '--kinds', 'idr_*', '--owner', 'ann', '--start');
    const question = [id, '--kind', KIND, '--body', BODY];
    t.same(await json(data, 'exporters', 'explain', ...question, '--owner', 'ann'), { wanted: true });
    t.match(await scanwire(['exporters', 'explain', ...question, '--data', data]), { code: 0, stdout: /owner/ });

    t.match(await json(data, 'exporters', 'update', id, '--filter', filter), { filter: { all: [{ path: 'title' }] } });
    t.match(await scanwire(['exporters', 'explain', ...question, '--owner', 'ann', '--data', data]), { code: 0, stdout: /title/ });

    const previewed = await scanwire(['exporters', 'preview', ...question, '--data', data]);
    t.match(previewed, { code: 0, stdout: /^Authorization: \*+$[\s\S]*^\{"/m });
    t.notMatch(previewed.stdout, /hunter2/);
    await json(data, 'exporters', 'update', id, '--format', 'cloudevents');
    const { headers, body } = await json<{ headers: string[][]; body: string }>(data, 'exporters', 'preview', ...question);
    t.match(new Map(headers as [string, string][]).get('Content-Type'), /^application\/cloudevents\+json/);
    t.match(JSON.parse(body), { specversion: '1.0', data: { title: String } });
});

t.test('accepts an event once under a key of the caller, and lists and counts deliveries by all filters', async (t) => {
    const data = await served(t);
    const publish = ['events', 'publish', KIND, BODY, '--idempotency-key', 'one'];
    const first = await json<{ eventId: string }>(data, ...publish);
    t.strictSame(await json(data, ...publish), first);
    t.match(await scanwire([...publish, '--owner', 'ann', '--data', data]), { code: 0 }, 'keys of owners are apart');
    const other = join(t.testdir({}), 'other.json');
    await writeFile(other, JSON.stringify({ title: 'another' }));
    t.match(await scanwire(['events', 'publish', 'test', other, '--idempotency-key', 'one', '--data', data]), { code: 1 });

    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', `http://${RECEIVER}/in`);
    const test = await scanwire(['exporters', 'test', id, '--data', data, '--json']);
    const { deliveryId } = JSON.parse(test.stdout) as { deliveryId: string };
    const { eventId, state, lastCode } = await json<Record<string, string>>(data, 'deliveries', 'show', deliveryId);
    const filters = [
        ['--exporter', id],
        ['--event', String(eventId)],
        ['--state', String(state)],
        ['--kind', 'test'],
        ['--outcome', String(lastCode)],
        ['--since', '1h'],
        ['--until', '2099-01-01'],
    ];
    t.match(await json(data, 'deliveries', 'list', ...filters.flat()), [{ id: deliveryId }]);
    t.same(await json(data, 'deliveries', 'list', ...filters.flat(), '--count'), { count: 1, more: false });
    t.same(await json(data, 'deliveries', 'list', '--kind', 'none', '--count'), { count: 0, more: false });
});

/** The data folder of a server that may call the receiver. */
async function served(t: Test): Promise<string> {
    const data = await usedDataOf(t);
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json'], { env: { SCANWIRE_EGRESS_ALLOW: RECEIVER } });
    t.teardown(() => server.kill('SIGKILL'));
    await nextJson(server, linesOf(server));
    return data;
}
