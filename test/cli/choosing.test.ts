import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { authority, certificate } from '../support/certificates.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { fixture, json, said, usedDataOf } from '../support/served.ts';

const KIND = 'idr_investigation_created';
const BODY = fixture('events/investigation.json');
/** Nobody listens there, and no test takes a port as low. */
const RECEIVER = '127.0.0.1:9';
/** The data folder of the server that tests share which need none of their own. */
let shared: Promise<string> | undefined;

t.test('accepts an event once under a key of the caller, and lists and counts deliveries by all filters', async (t) => {
    shared ??= served();
    const data = await shared;
    const publish = ['events', 'publish', KIND, BODY, '--idempotency-key', 'one'];
    const first = await json<{ eventId: string }>(data, ...publish);
    t.strictSame(await json(data, ...publish), first);
    t.match(await said([...publish, '--owner', 'ann', '--data', data]), { code: 0 }, 'keys of owners are apart');
    const other = join(t.testdir({}), 'other.json');
    await writeFile(other, JSON.stringify({ ...JSON.parse(await readFile(BODY, 'utf8')), title: 'another' }));
    t.match(await said(['events', 'publish', KIND, other, '--idempotency-key', 'one', '--data', data]), {
        code: 1,
        stderr: 'scanwire: Cannot accept another kind or body under an idempotency key that was used before (idempotencyKey)\n',
    });

    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', `http://${RECEIVER}/in`);
    const test = await said(['exporters', 'test', id, '--data', data, '--json']);
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

    const attempts = [...filters.flat(), '--delivery', deliveryId];
    t.match(await json(data, 'attempts', 'list', ...attempts), [{ id: `${deliveryId}:1`, deliveryId, code: lastCode }]);
    t.same(await json(data, 'attempts', 'list', ...attempts, '--count'), { count: 1, more: false });
    t.same(await json(data, 'attempts', 'list', '--after', `${deliveryId}:1`, '--limit', '1'), []);
    t.match(await said(['attempts', 'list', '--data', data]), {
        code: 0,
        stdout: /^ID +KIND +EXPORTER +STARTED +STATUS +OUTCOME +TOOK +DETAIL\n[-0-9a-f]{36}:1 +test /,
    });
    t.match(await said(['attempts', 'list', '--outcome', 'none', '--data', data]), { code: 1, stderr: /outcome/ });
});

t.test('says who gets an event and why not, and what would be sent, with nothing secret', async (t) => {
    shared ??= served();
    const data = await shared;
    const filter = join(t.testdir({}), 'filter.json');
    await writeFile(filter, JSON.stringify({ all: [{ path: 'title', op: 'contains', value: 'no such words' }] }));
    const url = ['--url', `http://${RECEIVER}/in`, '--header', 'Authorization: Bearer hunter2'];
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', ...url, '--kinds', 'idr_*', '--owner', 'ann', '--start');
    const question = [id, '--kind', KIND, '--body', BODY];
    t.same(await json(data, 'exporters', 'explain', ...question, '--owner', 'ann'), { wanted: true });
    t.match(await said(['exporters', 'explain', ...question, '--data', data]), { code: 0, stdout: /owner/ });

    t.match(await json(data, 'exporters', 'update', id, '--filter', filter), { filter: { all: [{ path: 'title' }] } });
    const none = join(t.testdir({}), 'none.json');
    await writeFile(none, 'null');
    t.match(
        await said(['exporters', 'update', id, '--filter', none, '--data', data]),
        { code: 1, stderr: 'scanwire: What is given for --filter must be more than null\n' },
        'a file without a filter drops none',
    );
    t.match(await said(['exporters', 'explain', ...question, '--owner', 'ann', '--data', data]), { code: 0, stdout: /title/ });

    const previewed = await said(['exporters', 'preview', ...question, '--data', data]);
    t.match(previewed, {
        code: 0,
        stdout: /^Authorization: \*+\n\(added as it is sent: Host, .+, Content-Length; and traceparent, .+\)\n\n\{"/m,
    });
    t.notMatch(previewed.stdout, /hunter2/);
    await json(data, 'exporters', 'update', id, '--format', 'cloudevents');
    const { headers, body } = await json<{ headers: string[][]; body: string }>(data, 'exporters', 'preview', ...question);
    t.match(new Map(headers as [string, string][]).get('Content-Type'), /^application\/cloudevents\+json/);
    t.equal(new Map(headers as [string, string][]).get('X-Acme-Event'), KIND, 'the vendor is that of `serve`');
    t.match(JSON.parse(body), { specversion: '1.0', source: '/Acme/webhook-exporter', data: { title: String } });

    const test = await json<{ body: string }>(data, 'exporters', 'preview', id, '--kind', 'test');
    t.match(JSON.parse(test.body), { type: 'test', data: { webhook_id: id } });
    t.match(await said(['exporters', 'preview', id, '--kind', KIND, '--data', data]), { code: 2, stderr: /--body/ });
});

t.test('gives an exporter to another owner while nothing but tests is kept of it', async (t) => {
    shared ??= served();
    const data = await shared;
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', `http://${RECEIVER}/in`, '--start');
    t.match(await json(data, 'exporters', 'update', id, '--owner', 'eve'), { owner: 'eve' });
    t.match(await json(data, 'exporters', 'update', id, '--no-owner'), { owner: null });
    t.match(await json(data, 'exporters', 'update', id, '--owner', 'fay', '--name', 'hers'), { owner: 'fay', name: 'hers' });

    await json(data, 'events', 'publish', KIND, BODY, '--owner', 'fay');
    const refused = await said(['exporters', 'update', id, '--owner', 'eve', '--data', data]);
    t.match(refused, { code: 1, stderr: /Cannot change the owner of an exporter while deliveries or replays of it are kept/ });
    t.match(await json(data, 'exporters', 'show', id), { owner: 'fay' });

    const listed = await json<object[]>(data, 'exporters', 'list', '--owner', 'fay');
    t.match(listed, [{ id, owner: 'fay' }]);
    t.equal(listed.length, 1, 'and none of another');
    const none = { code: 0, stdout: 'No exporters of this owner.\n' };
    t.match(await said(['exporters', 'list', '--owner', 'nobody', '--data', data]), none);
});

t.test('takes a template, the secret of a format and a rate, and looks at the receiver', async (t) => {
    shared ??= served();
    const data = await shared;
    const folder = t.testdir({
        template: JSON.stringify({
            text: '{{ kind }}: {{ body.title }}',
            // Such an hour there is not in the zone of the server.
            at: '{{ "2026-03-08T02:30:00Z" | date: "%H:%M" }}',
        }),
        secret: '0123456789abcdef0123456789abcdef\n',
    });
    const create = ['exporters', 'create', '--url', `http://${RECEIVER}/in`];
    const templated = ['--format', 'template', '--template', join(folder, 'template'), '--rate', '5/s'];
    const one = await json<{ id: string }>(data, ...create, ...templated);
    t.match(await json(data, 'exporters', 'show', one.id), { format: 'template', template: { text: String }, rate: 5 });
    const question = ['--kind', KIND, '--body', BODY];
    const { body } = await json<{ body: string }>(data, 'exporters', 'preview', one.id, ...question);
    t.same(JSON.parse(body), { text: `${KIND}: Harvested credentials used from two countries`, at: '02:30' });
    t.match(await json(data, 'exporters', 'update', one.id, '--no-rate'), { rate: null });

    const other = await json<{ id: string }>(data, ...create, '--format', 'pagerduty', '--format-secret-file', join(folder, 'secret'));
    const previewed = await said(['exporters', 'preview', other.id, ...question, '--data', data]);
    t.match(previewed, { code: 0, stdout: /"routing_key":"\*+"/ });
    const shown = await said(['exporters', 'show', other.id, '--data', data, '--json']);
    t.notMatch(`${previewed.stdout}${shown.stdout}`, /0123456789abcdef/);

    const diagnosed = await said(['doctor', '--exporter', one.id, '--data', data]);
    t.match(diagnosed, { code: 1, stdout: /^PART +STATE +FOUND\n(.+\n)+\S+ +wrong / });
    t.match(await json(data, 'deliveries', 'list', '--exporter', one.id), [{ kind: 'test', lastCode: 'connect_refused' }]);
    t.match(await said(['doctor', '--exporter', 'unknown', '--data', data]), { code: 1, stderr: /^scanwire: Unknown exporter/ });
});

t.test('takes retry delays in words, shows them, and goes back to the default ones', async (t) => {
    shared ??= served();
    const data = await shared;
    const create = ['exporters', 'create', '--url', `http://${RECEIVER}/in`];
    const text = async (id: string): Promise<string> => (await said(['exporters', 'show', id, '--data', data])).stdout;
    const plain = await json<{ id: string }>(data, ...create);
    t.notOk('schedule' in plain, 'as before where none is set');
    t.notMatch(await text(plain.id), /Schedule/);

    const { id } = await json<{ id: string }>(data, ...create, '--schedule', '5s,30s, 2m');
    const own = { schedule: [5_000, 30_000, 120_000] };
    t.match(await json(data, 'exporters', 'show', id), own);
    const listed = await json<{ id: string }[]>(data, 'exporters', 'list');
    t.match(
        listed.find((one) => one.id === id),
        own,
        'in lists too',
    );
    t.match(await text(id), /^Schedule +5s, 30s, 2m$/m);
    t.match(await json(data, 'exporters', 'update', id, '--name', 'theirs'), own, 'it stays');
    t.match(await json(data, 'exporters', 'update', id, '--schedule', '1h'), { schedule: [3_600_000] });
    t.notOk('schedule' in (await json<object>(data, 'exporters', 'update', id, '--no-schedule')));
    t.notMatch(await text(id), /Schedule/);

    for (const wrong of ['', '5', '5s,,2m', '5s;2m', '500ms']) {
        const refused = await said(['exporters', 'update', id, '--schedule', wrong, '--data', data]);
        t.match(refused, { code: 2, stderr: /--schedule.*It must be spans such as 30s, 5m, 2h or 7d, with commas/ }, wrong);
    }
    const late = await said(['exporters', 'update', id, '--schedule', '5s,8d', '--data', data]);
    t.match(late, { code: 2, stderr: /--schedule.*8d is too long: each must be from 1s to 7d/ });
});

t.test('takes what an exporter authenticates by out of files, and shows none of it', async (t) => {
    shared ??= served();
    const data = await shared;
    const root = await authority('Private root');
    const identity = await certificate({ authority: root });
    const folder = t.testdir({
        basic: 'siem:hunter2\n',
        proxy: 'http://siem:hunter2@proxy.example.com:3128\n',
        ca: root.cert,
        cert: identity.cert,
        key: identity.key,
        oauth: JSON.stringify({ tokenUrl: 'https://tokens.example.com/', clientId: 'id', clientSecret: 'hunter2' }),
    });
    const from = (name: string): string => join(folder, name);
    const create = ['exporters', 'create', '--url', 'https://receiver.example.com/in'];
    const files = ['--ca', from('ca'), '--client-cert', from('cert'), '--client-key', from('key'), '--proxy-file', from('proxy')];
    for (const [more, authentication] of [
        [
            ['--basic-file', from('basic')],
            ['basic', 'ca', 'clientCertificate', 'proxy'],
        ],
        [
            ['--oauth', from('oauth')],
            ['oauth', 'ca', 'clientCertificate', 'proxy'],
        ],
    ] as const) {
        const { id } = await json<{ id: string }>(data, ...create, ...files, ...more);
        const shown = await said(['exporters', 'show', id, '--data', data, '--json']);
        t.strictSame((JSON.parse(shown.stdout) as { authentication: string[] }).authentication.toSorted(), [...authentication].toSorted());
        t.notMatch(shown.stdout, /hunter2|PRIVATE KEY/);
    }
});

t.test('sends once more what failed, and what was held while its receiver had stopped an exporter', async (t) => {
    let status = 204;
    const receiver = await countingReceiver(t, (response) => response.writeHead(status).end());
    const data = await served(new URL(receiver.url).host);
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', '--url', receiver.url, '--start');
    const publish = async (): Promise<string> => {
        const { deliveries } = await json<{ deliveries: string[] }>(data, 'events', 'publish', KIND, BODY);
        return String(deliveries[0]);
    };
    const isIn = async (delivery: string, outcome: string) =>
        (await json<{ lastCode: string | null }>(data, 'deliveries', 'show', delivery)).lastCode === outcome;
    const replayed = async (total: number) => {
        const [last] = await json<{ state: string; done: number; total: number }[]>(data, 'deliveries', 'replays');
        return last?.state === 'done' && last.done === total && last.total === total;
    };
    status = 400;
    const failed = await publish();
    await until(() => isIn(failed, 'client_error'));
    const replay = ['deliveries', 'replay', '--exporter', id];
    t.same(await json(data, ...replay, '--failed-since', '1h', '--dry-run'), { total: 1 });
    status = 204;
    t.match(await json(data, ...replay, '--failed-since', '1h', '--rate', '5/s'), { rate: 5, total: 1 });
    await until(() => replayed(1));
    await until(() => isIn(failed, 'delivered'));
    t.match(await json(data, 'attempts', 'list', '--delivery', failed, '--outcome', 'client_error'), [{ status: 400 }]);

    status = 410;
    const gone = await publish();
    await until(() => isIn(gone, 'gone'));
    const held = await publish();
    t.match(await json(data, 'deliveries', 'show', held), { state: 'held' });
    status = 204;
    t.match(await json(data, 'exporters', 'start', id), { state: 'running', held: { count: 1, more: false } });
    t.match(await json(data, 'exporters', 'update', id, '--name', 'ours', '--start'), { name: 'ours', held: { count: 1, more: false } });
    t.notHas(await json(data, 'exporters', 'update', id, '--name', ''), { held: {} });
    const started = await said(['exporters', 'start', id, '--data', data]);
    t.match(started, { code: 0, stdout: `1; to send them: scanwire deliveries replay --exporter ${id} --held` });
    t.match(await json(data, ...replay, '--held'), { failedSince: null, total: 1 });
    await until(() => isIn(held, 'delivered'));
    t.match(await json(data, 'exporters', 'start', id), { held: { count: 0, more: false } });
});

/** The data folder of a server that may call the receiver. */
async function served(receiver: string = RECEIVER): Promise<string> {
    const data = await usedDataOf(t);
    const args = ['serve', '--data', data, '--port', '0', '--vendor', 'Acme', '--json'];
    const server = startScanwire(args, { env: { SCANWIRE_EGRESS_ALLOW: receiver, TZ: 'America/New_York' } });
    t.teardown(() => server.kill('SIGKILL'));
    await nextJson(server, linesOf(server));
    return data;
}

t.test('says how long the secret before a new one goes on signing', async (t) => {
    shared ??= served();
    const data = await shared;
    const settings = ['--url', `http://${RECEIVER}/in`, '--signature', 'standard-webhooks'];
    const { id } = await json<{ id: string }>(data, 'exporters', 'create', ...settings);
    for (const [overlap, count] of [
        [['--overlap', '0'], 1],
        [['--overlap', '2h'], 2],
        [[], 3],
    ] as const) {
        await json(data, 'exporters', 'update', id, '--secret', `secret of ${count}`, ...overlap);
        const question = [id, '--kind', KIND, '--body', BODY];
        const { headers } = await json<{ headers: [string, string][] }>(data, 'exporters', 'preview', ...question);
        t.equal(String(new Map(headers).get('webhook-signature')).split(' ').length, count, overlap.join(' '));
    }
    const endless = ['exporters', 'update', id, '--secret', 'a', '--overlap', '721h', '--data', data];
    t.match(await said(endless), { code: 1, stderr: /overlap/i });
});
