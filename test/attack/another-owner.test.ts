import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { InvestigationCreated } from '../../lib/webhooks/events/event-body-types.ts';
import { endpoints, type OperationName } from '../../plugins/admin-console/operations.ts';
import { admin, host, receiver, register, systemOf } from '../plugins/admin-console/host.ts';
import { Visitor } from '../plugins/admin-console/visitor.ts';
import { fixture } from '../support/served.ts';

/*
 * An owner tries every operation with what is another owner's, or the operator's: the answer is that to an id which does not exist, and nothing
 * is changed, sent or counted. `serve` has one operator and no owners' consoles: those are of hosts, so a host is asked here, over the network.
 */

const PREFIX = '/admin-console';
const KIND = 'idr_investigation_created';
const BODY = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')) as InvestigationCreated;
const SINCE = '2026-01-01T00:00:00.000Z';

/** What belongs to somebody. */
interface Belongings {
    readonly exporter: string;
    readonly delivery: string;
    readonly event: string;
    readonly replay: string;
}

/** An input, of what it is asked about. */
type Asked = (of: Belongings) => Readonly<Record<string, unknown>>;

const exporterId: Asked = ({ exporter }) => ({ id: exporter });
const deliveryId: Asked = ({ delivery }) => ({ id: delivery });
const question: Asked = ({ exporter }) => ({ id: exporter, kind: KIND, body: BODY });

/** With what each operation of an owner can be asked about another's; null for those that an owner does not have. */
const ATTACKS: { readonly [Name in OperationName]: readonly Asked[] | null } = {
    createKey: null,
    listKeys: null,
    revealKey: null,
    revokeKey: null,
    createExporter: [],
    listExporters: [() => ({}), () => ({ owner: 'bob' })],
    summarizeExporters: [() => ({}), () => ({ owner: 'bob' })],
    pageExporters: [() => ({}), ({ exporter }) => ({ after: exporter }), () => ({ owner: 'bob' })],
    showExporter: [exporterId, ({ exporter }) => ({ id: exporter, showUrl: true })],
    updateExporter: [
        ({ exporter }) => ({ id: exporter, name: 'mine', start: true }),
        ({ exporter }) => ({ id: exporter, url: 'http://127.0.0.1:9/', keepHeaders: true }),
        ({ exporter }) => ({ id: exporter, url: 'no url' }),
        ({ exporter }) => ({ id: exporter, owner: 'ann' }),
        ({ exporter }) => ({ id: exporter, owner: null }),
    ],
    startExporter: [exporterId],
    stopExporter: [exporterId],
    pauseExporter: [exporterId],
    resumeExporter: [exporterId],
    testExporter: [exporterId],
    removeExporter: [exporterId],
    explainExporter: [question, (of) => ({ ...question(of), owner: 'bob' }), (of) => ({ ...question(of), kind: 'none' })],
    previewExporter: [question],
    previewDraft: [({ exporter }) => ({ draft: { id: exporter, kinds: null }, kind: KIND, body: BODY })],
    publishEvent: null,
    showEvent: [({ event }) => ({ id: event })],
    eraseEvent: null,
    listDeliveries: [
        () => ({}),
        ({ exporter }) => ({ exporterId: exporter }),
        ({ event }) => ({ eventId: event }),
        ({ delivery }) => ({ after: delivery }),
    ],
    countDeliveries: [
        () => ({}),
        ({ exporter }) => ({ exporterId: exporter }),
        ({ event }) => ({ eventId: event }),
        ({ delivery }) => ({ after: delivery }),
    ],
    listAttempts: attemptAttacks(),
    countAttempts: attemptAttacks(),
    showActivity: [() => ({}), ({ exporter }) => ({ exporterId: exporter, span: 'day' })],
    showDelivery: [deliveryId],
    showMessage: [deliveryId],
    replayDelivery: [deliveryId],
    discardDelivery: [deliveryId],
    beginReplay: [
        ({ exporter }) => ({ exporterId: exporter, failedSince: SINCE }),
        ({ exporter }) => ({ exporterId: exporter, failedSince: SINCE, dryRun: true }),
        ({ exporter }) => ({ exporterId: exporter, held: true }),
        ({ exporter }) => ({ exporterId: exporter, held: true, rate: 7 }),
    ],
    listReplays: [() => ({})],
    showReplay: [({ replay }) => ({ id: replay })],
    cancelReplay: [({ replay }) => ({ id: replay })],
    diagnose: null,
    diagnoseExporter: null,
    showLicense: null,
    installLicense: null,
    trustLicense: null,
    importScan: null,
    exportWorkspace: null,
    listWorkspaces: null,
    showWorkspace: null,
    updateWorkspace: null,
    renameWorkspace: null,
    removeWorkspace: null,
    listHosts: null,
    showHost: null,
    moveHosts: null,
    removeHosts: null,
    expireHosts: null,
    rotateKeyRing: null,
    migrate: null,
    listAudit: null,
};

function attemptAttacks(): readonly Asked[] {
    return [
        () => ({}),
        ({ exporter }) => ({ exporterId: exporter }),
        ({ event }) => ({ eventId: event }),
        ({ delivery }) => ({ deliveryId: delivery }),
        ({ delivery }) => ({ after: `${delivery}:1` }),
        () => ({ since: SINCE, outcome: 'delivered' }),
    ];
}

const names = Object.keys(ATTACKS) as OperationName[];

async function ask(server: Server, owner: string, name: OperationName, input: Readonly<Record<string, unknown>>) {
    const { method, path } = endpoints[name];
    const fields = new Map(Object.entries(input));
    const url = path.replace(/\{(\w+)\}/g, (_, field: string) => {
        const value = String(fields.get(field) ?? randomUUID());
        fields.delete(field);
        return encodeURIComponent(value);
    });
    const inQuery = method === 'GET' || method === 'DELETE';
    const query = inQuery ? `?${new URLSearchParams(Object.fromEntries(fields) as Record<string, string>)}` : '';
    const answer = await fetch(server.info.uri + PREFIX + url + query, {
        method,
        headers: { ...admin, owner, ...(!inQuery && { 'content-type': 'application/json' }) },
        ...(!inQuery && { body: JSON.stringify(Object.fromEntries(fields)) }),
    });
    return { status: answer.status, payload: await answer.text() };
}

/** A host whose customers have the console of an owner each: `ann` and `bob`, who both have the event that somebody else has too. */
async function served(t: Test) {
    const server = await host({ host: '127.0.0.1' });
    const system = systemOf(server);
    await register(server, { system, screens: {}, owner: ({ headers }) => headers.owner as string });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const { exporters, deliveries } = server.plugins['webhook-exporter'];
    const url = await receiver(t);

    /** One that was sent what it took and what it refused. */
    async function belongings(owner: string | null): Promise<Belongings> {
        const { exporter } = await exporters.create({ url, name: `of ${owner}`, owner });
        await exporters.start(exporter.id);
        const { eventId, deliveries: ids } = await server.plugins['webhook-exporter'].publish(KIND, BODY, owner === null ? {} : { owner });
        await until(async () => (await Promise.all(ids.map((id) => deliveries.show(id)))).every(({ finishedAt }) => finishedAt !== null));
        const sent = await deliveries.list({ eventId, exporterId: exporter.id });
        const replay = await deliveries.replays.begin({ exporterId: exporter.id, failedSince: new Date(SINCE) });
        return { exporter: exporter.id, delivery: present(sent[0]).id, event: eventId, replay: replay.id };
    }

    /** All that there is of anybody. */
    async function everything(): Promise<string> {
        const all = await deliveries.list({ limit: 1000 });
        const histories = await Promise.all(all.map(({ id }) => deliveries.show(id)));
        return JSON.stringify([await exporters.list(), histories, await deliveries.replays.list()]);
    }

    return { server, system, url, belongings, everything };
}

t.test('answers as if nothing of others were there, and changes nothing', async (t) => {
    const { server, belongings, everything } = await served(t);
    const theirs = { ann: await belongings('ann'), operator: await belongings(null) };
    const before = await everything();
    const nothing = { exporter: randomUUID(), delivery: randomUUID(), event: randomUUID(), replay: randomUUID() };
    for (const name of names) {
        for (const attack of ATTACKS[name] ?? []) {
            const expected = await ask(server, 'bob', name, attack(nothing));
            for (const [whose, of] of Object.entries(theirs)) {
                const answer = await ask(server, 'bob', name, attack(of));
                t.same(withoutTime(answer), withoutTime(expected), `${name} with what is of ${whose}: ${answer.status}`);
                t.notMatch(answer.payload, of.exporter);
                t.notMatch(answer.payload, of.event);
            }
        }
    }
    t.equal(await everything(), before, 'nothing was changed, sent or begun');
    t.match(JSON.parse((await ask(server, 'bob', 'countDeliveries', {})).payload), { count: 0, more: false });
});

function withoutTime({ status, payload }: { status: number; payload: string }) {
    return { status, payload: payload.replace(/^\{"at":"[^"]+"/, '') };
}

t.test('has no operation that reaches further, whatever part of the system it is of', async (t) => {
    const { server, belongings, everything } = await served(t);
    const ann = await belongings('ann');
    const before = await everything();
    for (const name of names.filter((one) => ATTACKS[one] === null)) {
        const { status, payload } = await ask(server, 'ann', name, { id: ann.exporter, workspace: 'default', name: 'default', body: BODY });
        t.same([name, status, JSON.parse(payload).message], [name, 404, 'Not Found']);
    }
    t.equal(await everything(), before);
});

t.test('lets an owner do all of it with what is theirs, of which others see nothing', async (t) => {
    const { server, belongings, url } = await served(t);
    const bob = await belongings('bob');
    const ann = await belongings('ann');
    for (const name of names) {
        for (const own of (ATTACKS[name] ?? []).filter(() => name !== 'removeExporter')) {
            const input = own(ann);
            const refused =
                ['no url', 'none', null].some((text) => Object.values(input).includes(text)) || name === 'cancelReplay'
                    ? [200, 400]
                    : [200];
            const { status, payload } = await ask(server, 'ann', name, input);
            t.ok(refused.includes(status), `${name}: ${status} ${payload.slice(0, 100)}`);
            t.notMatch(payload, bob.exporter);
        }
    }

    const listed = JSON.parse((await ask(server, 'ann', 'listExporters', {})).payload);
    t.match(listed, [{ id: ann.exporter, owner: 'ann' }]);
    t.equal(listed.length, 1);
    const deliveries = JSON.parse((await ask(server, 'ann', 'listDeliveries', {})).payload) as { exporterId: string }[];
    t.ok(deliveries.length > 1 && deliveries.every((one) => one.exporterId === ann.exporter));
    t.equal((await ask(server, 'ann', 'listDeliveries', { after: ann.delivery })).status, 200);
    const attempts = JSON.parse((await ask(server, 'ann', 'listAttempts', {})).payload) as { id: string; exporterId: string }[];
    t.ok(attempts.length > 1 && attempts.every((one) => one.exporterId === ann.exporter));
    const behind = JSON.parse((await ask(server, 'ann', 'listAttempts', { after: present(attempts[0]).id })).payload);
    t.same(behind, attempts.slice(1), 'goes on behind one of theirs');
    t.match(JSON.parse((await ask(server, 'ann', 'countAttempts', {})).payload), { count: attempts.length, more: false });

    const forged = JSON.parse((await ask(server, 'ann', 'createExporter', { url: 'http://127.0.0.1:9/', owner: 'bob' })).payload);
    t.equal(forged.owner, 'ann', 'whoever makes an exporter owns it');
    t.match(forged.warnings.map(({ message }: { message: string }) => message).join(), ann.exporter, 'told of her own with the same URL');
    t.notMatch(JSON.stringify(forged), bob.exporter, 'and of no other');
    const third = JSON.parse((await ask(server, 'carl', 'createExporter', { url })).payload);
    t.notMatch(JSON.stringify(third.warnings), 'same_url');

    t.equal((await ask(server, 'ann', 'removeExporter', { id: ann.exporter })).status, 200);
    t.equal((await ask(server, 'ann', 'showDelivery', { id: ann.delivery })).status, 404, 'what was sent by it goes with it');
    t.equal((await ask(server, 'bob', 'showDelivery', { id: bob.delivery })).status, 200);
});

t.test('lets an owner loosen nothing that is for the operator to give, and keep what the operator gave', async (t) => {
    const { server, belongings, url } = await served(t);
    const { exporter: id } = await belongings('ann');
    const { exporters } = server.plugins['webhook-exporter'];
    const proxy = { url: 'http://127.0.0.1:9', resolvesNames: true };
    for (const [field, settings] of [
        ['trust', { trust: 'all' }],
        ['proxy.resolvesNames', { proxy }],
    ] as const) {
        for (const [name, input] of [
            ['createExporter', { url, ...settings }],
            ['updateExporter', { id, ...settings }],
        ] as const) {
            const { status, payload } = await ask(server, 'ann', name, input);
            t.equal(status, 400, payload);
            t.match(JSON.parse(payload), { error: { code: 'INVALID_INPUT', field, message: /is for the operator to give$/ } });
        }
    }
    t.match(await exporters.list(), [{ id, trust: 'strict', authentication: [] }]);

    await exporters.update(id, { trust: 'all', proxy });
    t.equal((await ask(server, 'ann', 'updateExporter', { id, name: 'kept', trust: 'all' })).status, 200);
    t.match(await exporters.get(id), { name: 'kept', trust: 'all', authentication: ['proxy'] });
    t.equal((await ask(server, 'ann', 'updateExporter', { id, trust: 'strict' })).status, 200);
    t.equal((await ask(server, 'ann', 'updateExporter', { id, trust: 'all' })).status, 400);
});

t.test('lets an owner take what the operator gave for one receiver to no other', async (t) => {
    const { server, belongings, url } = await served(t);
    const { exporter: id } = await belongings('ann');
    const { exporters } = server.plugins['webhook-exporter'];
    const elsewhere = 'http://127.0.0.1:9/';
    const proxy = { url: 'http://127.0.0.1:9', resolvesNames: true };
    const client = { tokenUrl: 'https://tokens.example.com/', clientId: 'ann', clientSecret: 'secret' };
    const refused = async (field: string, why: RegExp, changes: Readonly<Record<string, unknown>>): Promise<void> => {
        const { status, payload } = await ask(server, 'ann', 'updateExporter', { id, keepHeaders: true, ...changes });
        t.equal(status, 400, payload);
        t.match(JSON.parse(payload), { error: { code: 'INVALID_INPUT', field, message: why } });
    };
    const taken = async (changes: Readonly<Record<string, unknown>>): Promise<void> => {
        const { status, payload } = await ask(server, 'ann', 'updateExporter', { id, ...changes });
        t.equal(status, 200, payload);
    };

    await exporters.update(id, { trust: 'all' });
    const trusting = /^URL must keep its scheme, host and port while trust is all: that is for the operator to give/;
    await refused('url', trusting, { url: elsewhere });
    await refused('url', trusting, { url: elsewhere, trust: 'all', proxy: null });
    await refused('url', /^URL/, { url: 'no url' });
    await taken({ url: `${url}/another-path` });
    t.match(await exporters.get(id), { trust: 'all', url: `${new URL(url).origin}/…` });
    await taken({ url: elsewhere, trust: 'strict' });

    await exporters.update(id, { url, proxy, oauth: client });
    const resolving = /must keep its scheme, host and port while the proxy resolves names: that is for the operator to give/;
    await refused('url', resolving, { url: elsewhere });
    await refused('url', resolving, { url: elsewhere, trust: 'strict', oauth: null });
    await refused('oauth.tokenUrl', resolving, { oauth: { ...client, tokenUrl: 'https://internal.example.com/' } });
    await taken({ url: `${url}/another-path`, keepHeaders: true, oauth: { ...client, tokenUrl: `${client.tokenUrl}new` } });
    await taken({ oauth: null });
    await refused('oauth.tokenUrl', resolving, { oauth: client });
    await taken({ url: elsewhere, proxy: null });
    await taken({ proxy: { url: 'http://127.0.0.1:9' } });
    await taken({ url, oauth: client });
    t.match(await exporters.list(), [{ id, trust: 'strict', authentication: ['proxy', 'oauth'] }]);

    await exporters.update(id, { trust: 'all', proxy });
    await exporters.update(id, { url: elsewhere, keepHeaders: true });
    t.match(await exporters.get(id), { trust: 'all', url: elsewhere }, 'the operator may');
});

t.test('lets an owner send to another host nothing that is hidden, whoever gave it', async (t) => {
    const { server, belongings, url } = await served(t);
    const { exporter: id } = await belongings('ann');
    const { exporters } = server.plugins['webhook-exporter'];
    const elsewhere = await receiver(t);
    const [headers, basic, formatSecret] = [[['X-Token', 'hidden']], { username: 'siem', password: 'hidden' }, 'a'.repeat(32)] as const;
    const change = async (changes: Readonly<Record<string, unknown>>) => {
        const { status, payload } = await ask(server, 'ann', 'updateExporter', { id, ...changes });
        return { status, ...JSON.parse(payload) };
    };
    const given = [
        ['headers', { headers }],
        ['basic', { basic }],
        ['formatSecret', { format: 'pagerduty', formatSecret }],
    ] as const;
    for (const [field, hidden] of given) {
        await exporters.update(id, { format: 'native', headers: [], basic: null, ...hidden });
        for (const keepHeaders of [true, false]) {
            t.match(await change({ url: elsewhere, keepHeaders }), {
                status: 400,
                error: {
                    code: 'INVALID_INPUT',
                    field,
                    message: /must be given again, for only the operator may keep it: the URL leads to another/,
                },
            });
        }
        t.equal((await change({ url: `${url}/same-host`, keepHeaders: true })).status, 200, 'to the same host it goes along');
        t.equal((await change({ url: elsewhere, ...hidden })).status, 200, 'what is given again goes along');
        await exporters.update(id, { url, keepHeaders: true });
    }
});

t.test('lists replays however many others have begun since, and ends them', async (t) => {
    const { server, belongings } = await served(t);
    const bob = await belongings('bob');
    const ann = await belongings('ann');
    const { replays } = server.plugins['webhook-exporter'].deliveries;
    for (let times = 0; times < 101; times += 1) {
        await replays.begin({ exporterId: ann.exporter, failedSince: new Date() });
    }
    t.same(
        JSON.parse((await ask(server, 'bob', 'listReplays', {})).payload).map(({ id }: { id: string }) => id),
        [bob.replay],
    );
    t.equal((await ask(server, 'bob', 'cancelReplay', { id: bob.replay })).status, 200);

    const { id } = await replays.begin({ exporterId: bob.exporter, failedSince: new Date(SINCE), rate: 1 });
    for (let times = 0; times < 101; times += 1) {
        await replays.cancel((await replays.begin({ exporterId: bob.exporter, failedSince: new Date() })).id);
    }
    t.match(JSON.parse((await ask(server, 'bob', 'showReplay', { id })).payload), { id });
    t.equal((await ask(server, 'bob', 'cancelReplay', { id })).status, 200, 'also one behind a hundred of his own');
    t.match(JSON.parse((await ask(server, 'bob', 'showReplay', { id: bob.replay })).payload), { id: bob.replay });
    t.equal((await ask(server, 'bob', 'cancelReplay', { id: bob.replay })).status, 200, 'and one that is listed no more');
});

t.test('lets nobody in whose owner is not known, and not to everything either', async (t) => {
    const { server, belongings } = await served(t);
    await belongings('ann');
    for (const owner of ['', 'x'.repeat(201)]) {
        const { status, payload } = await ask(server, owner, 'listExporters', {});
        t.ok(status >= 500, payload);
        t.match(JSON.parse(payload), { error: { field: 'owner' } });
        const page = await server.inject({ url: '/admin/exporters', headers: { ...admin, owner } });
        t.ok(page.statusCode >= 500);
        t.notMatch(page.payload, 'of ann');
    }
    t.equal((await server.inject({ url: `${PREFIX}/exporters`, headers: admin })).statusCode >= 500, true);
});

t.test('shows on every page what is an owner’s, and of others what there is of nothing', async (t) => {
    const { server, belongings, everything } = await served(t);
    const bob = await belongings('bob');
    const ann = await belongings('ann');
    const before = await everything();
    const visitor = new Visitor(server, { ...admin, owner: 'ann' });
    const exporters = await visitor.get('/admin');
    t.equal(exporters.path, '/admin/exporters');
    t.match(exporters.html, 'of ann');
    t.notMatch(exporters.html, /of bob|\/admin\/(?:keys|overview|audit)"/);
    for (const path of ['/keys', '/overview', '/audit']) {
        t.equal((await visitor.get(`/admin${path}`)).status, 404, path);
    }
    const pages = [
        (of: Belongings) => `/exporters/${of.exporter}`,
        (of: Belongings) => `/exporters/${of.exporter}/edit`,
        (of: Belongings) => `/exporters/${ann.exporter}?test=${of.delivery}`,
        (of: Belongings) => `/deliveries/${of.delivery}`,
        (of: Belongings) => `/deliveries?exporterId=${of.exporter}`,
        (of: Belongings) => `/deliveries?eventId=${of.event}`,
        (of: Belongings) => `/deliveries?after=${of.delivery}`,
        (of: Belongings) => `/deliveries/activity?exporterId=${of.exporter}`,
        (of: Belongings) => `/deliveries/replays?exporterId=${of.exporter}`,
    ];
    for (const page of pages) {
        const theirs = await visitor.get(`/admin${page(bob)}`);
        const nobodys = { exporter: randomUUID(), delivery: randomUUID(), event: randomUUID(), replay: randomUUID() };
        const none = await visitor.get(`/admin${page(nobodys)}`);
        t.equal(theirs.status, none.status, page(bob));
        // What was asked for stands in the form that asks.
        const said = theirs.html.replaceAll(/(?:value="|(?:exporterId|eventId)=)[0-9a-f-]{36}/g, '');
        for (const secret of ['of bob', ...Object.values(bob)]) {
            t.notMatch(said, secret, page(bob));
        }
        t.equal((await visitor.get(`/admin${page(ann)}`)).status, 200, page(ann));
    }
    const form = await visitor.get('/admin/exporters/new');
    t.notMatch(form.html, /name="(?:owner|trustAll)"/);
    const made = await visitor.send(form, '/admin/exporters', { url: 'http://127.0.0.1:9/', owner: 'bob', name: 'forged', start: null });
    t.match(made.html, 'The exporter was saved');
    t.match(await server.plugins['webhook-exporter'].exporters.list().then((all) => all.at(-1)), { name: 'forged', owner: 'ann' });
    t.notSame(await everything(), before);
});

t.test('streams to nobody what is of another', async (t) => {
    const { server, belongings } = await served(t);
    const follow = async (owner: string, path = '/deliveries/live'): Promise<{ text: string }> => {
        const asked = get(`${server.info.uri}/admin${path}`, { headers: { ...admin, owner } });
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        const all = { text: '' };
        response.on('data', (chunk) => {
            all.text += chunk;
        });
        return all;
    };
    const [ann, bob] = await Promise.all([follow('ann'), follow('bob')]);
    await until(() => [ann, bob].every(({ text }) => text.includes('0 deliveries')));
    const { exporter } = await belongings('bob');
    await until(() => bob.text.includes(exporter));
    await until(async () => bob.text.match(/event: shown/g)?.length === 2 || bob.text.includes('2 deliveries'));
    t.notMatch(ann.text, exporter);
    t.notMatch(ann.text, /[1-9] deliveries/);

    const { delivery } = await belongings('bob');
    const one = `/deliveries/${delivery}/live`;
    const [stranger, owner] = await Promise.all([follow('ann', one), follow('bob', one)]);
    await until(() => owner.text.includes('event: shown'));
    await server.plugins['webhook-exporter'].deliveries.replay(delivery);
    await until(() => (owner.text.match(/event: shown/g)?.length ?? 0) > 1);
    t.notMatch(stranger.text, 'event:', 'not even that there is one');
});

t.test('is there for what an owner can have only', async (t) => {
    const server = await host();
    const { keys } = systemOf(server);
    await t.rejects(register(server, { system: { keys }, owner: () => 'ann' }), { code: 'MISCONFIGURED', field: 'owner' });
});

t.test('does not take a store that is away for one in which there is nothing', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    const { deliveries, ...webhooks } = server.plugins['webhook-exporter'];
    const show = () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The database cannot be reached'));
    await register(server, { system: { webhooks: { ...webhooks, deliveries: { ...deliveries, show } } }, owner: () => 'ann' });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    for (const [name, input] of [
        ['listDeliveries', { after: randomUUID() }],
        ['countDeliveries', { after: randomUUID() }],
        ['listAttempts', { after: `${randomUUID()}:1` }],
        ['showDelivery', { id: randomUUID() }],
    ] as const) {
        t.equal((await ask(server, 'ann', name, input)).status, 503, name);
    }
});
