import type { Server } from '@hapi/hapi';
import { decodeHTML } from 'entities';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { Diagnosis } from '../../../lib/webhooks/observing/doctor.ts';
import { FINDING_WORDS, type FindingCode } from '../../../lib/webhooks/observing/doctor-words.ts';
import { type System, type Texts, texts } from '../../../plugins/admin-console/index.ts';
import { languagesOf } from '../../../plugins/admin-console/screens/languages.ts';
import { answering, host, investigation, register, systemOf } from './host.ts';
import { type Seen, Visitor } from './visitor.ts';

/*
 * Another language: a host gives the pages all their texts, and no English is left on any of them. The language here has Greek letters, so
 * that a word in Latin ones is either data or a sentence that was forgotten.
 */

const LETTERS = 'αβγδεζηθικλμνξοπρστυφχψωϊϋ';

function translated(text: string): string {
    return text.replace(/[a-z]/gi, (letter) => LETTERS[letter.toLowerCase().charCodeAt(0) - 97] ?? '');
}

function mapped(form: unknown, change: (text: string, path: string) => unknown, path = ''): unknown {
    if (typeof form === 'string') {
        return change(form, path);
    }
    const at = (key: string): string => (path === '' ? key : `${path}.${key}`);
    if (Array.isArray(form)) {
        return form.map((part, index) => mapped(part, change, at(String(index))));
    }
    return typeof form === 'object' && form !== null
        ? Object.fromEntries(Object.entries(form).flatMap(([key, part]) => entryOf(key, mapped(part, change, at(key)))))
        : form;
}

function entryOf(key: string, part: unknown): readonly [string, unknown][] {
    return part === undefined ? [] : [[key, part]];
}

/** All texts but what the library adds in English, which this language leaves out. */
const greek = mapped(texts, (text, path) =>
    path === 'locale' ? 'el' : path.startsWith('said.') ? translated(`of this kind: ${path}`) : translated(text),
) as Texts;

/** What is no word: names, ids, addresses and codes, as somebody who looks at these pages knows them. */
const DATA =
    /https?:\/\/\S+|[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_.-]+[_:.-][A-Za-z0-9_:.-]+|whsec_\S+|[A-Z][A-Za-z]+-[\w-]+|\b(?:test|default|alerts|native|template|webhook|ada|gone|slack|ntfy|pagerduty|opsgenie|discord|elasticsearch|loki|cef|ecs|syslog|cloudevents|delivered|interrupted|timeout|base64|hex|admin|filter|kinds|nightly)\b/g;

const SHOWN_ATTRIBUTES = /\b(?:aria-label|title|placeholder|data-copied|data-texts|content)="([^"]*)"/g;
const NO_TEXT = /<head>[\s\S]*?<title>|<code\b[\s\S]*?<\/code>|<pre\b[\s\S]*?<\/pre>|<textarea\b[\s\S]*?<\/textarea>/g;

/** Words in Latin letters that a page shows, or says to who cannot see it, and that are no data. */
function latinWords(html: string): readonly string[] {
    const shown = html.replace(NO_TEXT, ' ');
    const attributes = Array.from(shown.matchAll(SHOWN_ATTRIBUTES), ([, value = '']) => value.replace(/"[a-z]+":/g, ' '));
    const said = decodeHTML([shown.replace(/<[^>]*>/g, ' '), ...attributes].join(' \n ')).replace(
        /"(?:on|off|paused|pause|resume)":/g,
        ' ',
    );
    return said.replace(DATA, ' ').match(/[A-Za-z]{2,}/g) ?? [];
}

/** English sentences that a page has, of those that pages can say. */
const SENTENCES: string[] = [];
mapped(texts, (text) => (/[a-z]{2,} [a-z]{2,}/i.test(text) ? SENTENCES.push(text) : null));

function sentencesIn(html: string): readonly string[] {
    const said = decodeHTML(html);
    return SENTENCES.filter((sentence) => said.includes(sentence));
}

interface Visited {
    readonly server: Server;
    readonly visitor: Visitor;
    readonly system: System;
    /** Looks at a page, which must not have any English. */
    see(page: Promise<Seen>, title: string): Promise<Seen>;
}

/** Findings of every kind, as the doctor says them. */
const SICK: Diagnosis = {
    healthy: false,
    findings: [
        { part: 'store', state: 'ok', text: 'Of an application', advice: null },
        ...(Object.keys(FINDING_WORDS) as FindingCode[]).map((code) => ({
            part: 'names' as const,
            state: 'warning' as const,
            code,
            values: ['1', '2', '3'],
            text: 'English',
            advice: 'English',
        })),
    ],
};

async function visited(t: Test, language: Texts | readonly Texts[], doctor?: () => Promise<Diagnosis>): Promise<Visited> {
    const server = await host();
    const system = systemOf(server);
    const webhooks = doctor === undefined ? system.webhooks : { ...system.webhooks, doctor };
    await register(server, { system: { ...system, webhooks }, screens: { texts: language, signOut: '/out' } });
    await server.initialize();
    t.teardown(() => server.stop());
    return {
        server,
        system,
        visitor: new Visitor(server),
        async see(page, title) {
            const seen = await page;
            t.same(latinWords(seen.html), [], `${title}: no word in Latin letters`);
            t.same(sentencesIn(seen.html), [], `${title}: no English sentence`);
            return seen;
        },
    };
}

t.test('the check sees English', async (t) => {
    const { visitor } = await visited(t, texts);
    for (const path of [
        'overview',
        'keys',
        'exporters/new',
        'deliveries',
        'deliveries/replays',
        'deliveries/activity',
        'audit',
        'nowhere/x',
    ]) {
        const { html, status } = await visitor.get(`/admin/${path}`);
        t.ok(status === 404 || latinWords(html).length > 8, path);
        t.ok(status === 404 || sentencesIn(html).length > 0, path);
    }
});

t.test('keys, overview, audit and refusals have the texts that the host gives', async (t) => {
    const { visitor, see, system, server } = await visited(t, greek, async () => SICK);
    const get = (path: string): Promise<Seen> => see(visitor.get(`/admin/${path}`), path);
    t.match((await get('overview')).html, /<html lang="el">/);
    const keys = await get('keys');
    await see(visitor.send(keys, '/admin/keys', { name: '' }), 'a key without a name');
    await see(visitor.send(keys, '/admin/keys', { name: 'nightly', workspaces: 'x' }), 'a key of no workspace');
    await see(visitor.send(keys, '/admin/keys', { name: 'nightly', expiresAt: '2001-01-01' }), 'a key that has ended');
    const made = await see(visitor.send(keys, '/admin/keys', { name: 'nightly' }), 'a key that was made');
    const [{ id } = { id: '' }] = await system.keys.list();
    await see(visitor.send(made, `/admin/keys/${id}/reveal`), 'a key that is shown');
    await see(visitor.send(made, `/admin/keys/${id}/revoke`), 'a key that was revoked');
    await get('exporters');
    await get('exporters/nobody');
    await get('deliveries/nobody');
    await get('audit');
    await get('audit?since=yesterday');
    await see(visitor.post('/admin/keys', 'name=x', { 'content-type': 'text/plain' }), 'no form');
    await see(visitor.post('/admin/keys', 'name=x'), 'a form from elsewhere');
    await see(new Visitor(server, { session: 'eve' }).get('/admin/keys'), 'a reader');
});

t.test('exporters and deliveries have the texts that the host gives, whatever becomes of them', async (t) => {
    const { visitor, see, server } = await visited(t, greek);
    const { deliveries, exporters, publish } = server.plugins['webhook-exporter'];
    const get = (path: string): Promise<Seen> => see(visitor.get(`/admin/${path}`), path);
    const receiver = await answering(t);
    const form = await get('exporters/new');
    const send = (fields: Record<string, string | readonly string[] | null>, title: string): Promise<Seen> =>
        see(visitor.send(form, '/admin/exporters', { url: receiver.url, name: 'alerts', ...fields }), title);
    await send({ url: 'nowhere' }, 'no URL');
    await send({ filter: '{' }, 'no JSON');
    await send({ again: 'basic.password', 'basic.username': 'u' }, 'a secret that is missing');
    await send({ preview: 'yes' }, 'what would be sent');
    await send({ preview: 'yes', kinds: 'other_kind' }, 'what would not be sent');
    await send({ preview: 'yes', sampleBody: '{' }, 'an event that is none');
    await send({ legacy: 'on', moreHeaders: 'yes' }, 'more headers');
    const made = await send({ headerName: ['X-Key'], headerValue: ['1'] }, 'an exporter that was added');
    const [{ id } = { id: '' }] = await exporters.list();
    const at = `/admin/exporters/${id}`;
    for (const action of ['stop', 'start', 'pause', 'resume', 'test']) {
        await see(visitor.send(await visitor.get(at), `${at}/${action === 'stop' ? 'stop' : action}`), action);
    }
    await see(visitor.send(made, `${at}/secret`, { secret: 'short' }), 'a secret that is none');
    await see(visitor.send(made, `${at}/secret`), 'a secret that was rotated');
    await get(`exporters/${id}/edit`);
    await get('overview');
    await see(visitor.send(await visitor.get('/admin/overview'), '/admin/overview/sample'), 'a sample event');

    receiver.status = 500;
    receiver.body = '1';
    const [failed = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    await until(async () => (await deliveries.show(failed)).lastCode === 'server_error');
    await get(`deliveries/${failed}`);
    await see(visitor.send(await visitor.get(at), `${at}/test`), 'a test that failed');
    receiver.status = 204;
    await see(visitor.send(await visitor.get(at), `${at}/test`), 'a test that has arrived');
    await get('exporters');
    await get('overview');
    await get('deliveries');
    await get('deliveries?since=yesterday');
    await get('deliveries/activity');
    await see(visitor.send(await visitor.get(`/admin/deliveries/${failed}`), `/admin/deliveries/${failed}/discard`), 'discarded');
    const replays = await get('deliveries/replays');
    const counted = await see(
        visitor.send(replays, '/admin/deliveries/replays', { exporterId: id, failedSince: '2001-01-01T00:00', step: 'count' }),
        'counted',
    );
    await see(visitor.send(counted, '/admin/deliveries/replays', { step: 'begin' }), 'begun');
    await see(visitor.send(replays, '/admin/deliveries/replays', { exporterId: id, failedSince: 'x', step: 'count' }), 'not counted');

    receiver.status = 410;
    const [gone = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    await until(async () => (await deliveries.show(gone)).lastCode === 'gone');
    await get('overview');
    await get('exporters');
    await get(`exporters/${id}`);
    await see(visitor.send(await visitor.get(at), `${at}/start`), 'started again');
    await see(visitor.send(await visitor.get(at), `${at}/remove`), 'removed');
    await get(`deliveries/${gone}`);
    await get('audit');
});

t.test('a browser gets the language that it wants most', async (t) => {
    const german = { ...texts, locale: 'de', keys: { ...texts.keys, title: 'Schlüssel' } };
    const { server } = await visited(t, [texts, german, greek]);
    const cases: readonly [string, string][] = [
        ['', 'en'],
        ['de', 'de'],
        ['de-AT, en;q=0.5', 'de'],
        ['en;q=0.3, el;q=0.7, de;q=0.5', 'el'],
        ['fr, el-GR;q=0.1', 'el'],
        ['de;q=0, fr', 'en'],
        ['fr, *;q=0.1', 'en'],
        ['DE', 'de'],
    ];
    for (const [wanted, expected] of cases) {
        const { html } = await new Visitor(server, { session: 'ada', 'accept-language': wanted }).get('/admin/keys');
        t.match(html, `<html lang="${expected}">`, wanted);
        t.equal(html.includes('<h1>Schlüssel</h1>'), expected === 'de', wanted);
    }
});

t.test('a number has as many forms as its language', async (t) => {
    const forms = { one: '% dostawa', few: '% dostawy', many: '% dostaw', other: '% dostawy.' };
    const polish = { ...texts, locale: 'pl', deliveries: { ...texts.deliveries, counted: forms } };
    const { server, visitor } = await visited(t, polish);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: (await answering(t)).url });
    const counted = async (): Promise<string | undefined> => /<p>(\d+ [^·]*?) ·/.exec((await visitor.get('/admin/deliveries')).html)?.[1];
    t.equal(await counted(), '0 dostaw');
    await exporters.start(exporter.id);
    t.equal(await counted(), '1 dostawa');
    await publish('idr_investigation_created', investigation);
    t.equal(await counted(), '2 dostawy');
});

t.test('a value stands where the language wants it', async (t) => {
    const turned = { ...texts, overview: { ...texts.overview, version: 'Node.js %2, scanwire %1' } };
    const { visitor } = await visited(t, turned);
    t.match((await visitor.get('/admin/overview')).html, /Node\.js \d+\.\d+\.\d+, scanwire \d/);
});

t.test('refuses texts of which one is missing, and names it', async (t) => {
    const paths: string[] = [];
    mapped(texts, (_, path) => paths.push(path));
    t.ok(paths.length > 400);
    for (const missing of paths) {
        const others = mapped(texts, (text, path) => (path === missing ? undefined : text)) as Texts;
        t.throws(() => languagesOf(others), { code: 'MISCONFIGURED', field: `screens.texts.${missing}`, message: missing }, missing);
    }
    const field = 'screens.texts[1].keys';
    const server = await host();
    const { keys: _, ...others } = greek;
    await t.rejects(
        register(server, { system: systemOf(server), screens: { texts: [texts, others as Texts] } }),
        {
            code: 'MISCONFIGURED',
            field: /^screens\.texts\[1\]\.keys/,
            message: /^admin-console options: screens\.texts\[1\]\.keys\.\w+ must be a text/,
        },
        field,
    );
    t.throws(() => languagesOf({ ...texts, locale: 'no language' }), { message: 'screens.texts.locale' });
    const wrong = await host();
    await t.rejects(register(wrong, { system: systemOf(wrong), screens: { texts: 'de' as unknown as Texts } }), {
        message: 'screens.texts',
    });
});
