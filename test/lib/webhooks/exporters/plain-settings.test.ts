import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { unlikeDefault } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryInventory } from '../../../../adapters/memory/inventory/inventory.ts';
import { dataFolder } from '../../../../cli/data-folder.ts';
import { alwaysLicensed } from '../../../../lib/license/license-source.ts';
import {
    byPlainSetting,
    PLAIN_SETTINGS,
    type PlainSettings,
    SETTING_NAMES,
    type SettingName,
    SHOWN_TOGETHER,
} from '../../../../lib/webhooks/exporters/plain-settings.ts';
import { texts } from '../../../../plugins/admin-console/screens/texts.ts';
import { plugin as restApiV2 } from '../../../../plugins/rest-api-v2/index.ts';
import { admin, embedded, host, receiver, register, systemOf } from '../../../plugins/admin-console/host.ts';
import { fieldsOf, Visitor } from '../../../plugins/admin-console/visitor.ts';
import { said } from '../../../support/served.ts';

/* A setting that is declared is everywhere: stored, typed into the form and on the command line, listed, described. */

/** Something else than the default for each, all of which an exporter can have together. */
const SET: Readonly<Record<string, unknown>> = {
    ...byPlainSetting(unlikeDefault),
    collector: 'west',
    kinds: ['idr_*'],
    filter: { path: 'title', op: '=', value: 'x' },
    format: 'template',
    // A form has them in this order.
    signatures: ['hex', 'standard-webhooks'],
};

/** What is typed into a form for that. How far a certificate is trusted is asked by controls of its own. */
const { trust: _, ...TYPED } = byPlainSetting(({ as }, name): string | readonly string[] => {
    const value = SET[name];
    switch (as) {
        case 'flag':
            return value === true ? 'on' : [];
        case 'choices':
            return value as readonly string[];
        case 'names':
            return (value as readonly string[]).join(', ');
        case 'json':
            return JSON.stringify(value, null, 2);
        default:
            return String(value);
    }
});

const UNSET = byPlainSetting(({ byDefault }) => byDefault);

t.test('the form takes each, a store keeps it, and the form, the page and the API show it', async (t) => {
    const server = await host({}, await embedded(t));
    await register(server, { system: systemOf(server), screens: {} });
    await server.register({
        plugin: restApiV2,
        options: { store: memoryInventory(), license: alwaysLicensed(), openapi: { public: true } },
    });
    await server.initialize();
    t.teardown(() => server.stop());
    const visitor = new Visitor(server);
    const typed = { ...TYPED, trustSelfSigned: 'on', url: await receiver(t), start: null };
    await visitor.send(await visitor.get('/admin/exporters/new'), '/admin/exporters', typed);
    const [exporter] = JSON.parse((await server.inject({ url: '/admin-console/exporters', headers: admin })).payload);
    t.match(exporter, SET);

    const at = `/admin/exporters/${exporter.id}`;
    const form = await visitor.get(`${at}/edit`);
    const sent = fieldsOf(form.html, `${at}/edit`);
    for (const [name, value] of Object.entries(TYPED)) {
        const values = sent.flatMap(([field, each]) => (field === name ? [each] : []));
        // A box that is checked has no value of its own.
        t.same(
            PLAIN_SETTINGS[name as SettingName].as === 'flag' ? values.map(() => 'on') : values.toSorted(),
            [value].flat().toSorted(),
            name,
        );
    }
    const { html } = await visitor.get(at);
    for (const name of SHOWN_TOGETHER) {
        t.match(html, `<dt>${texts.exporters[name]}</dt>`, `the page lists ${name}`);
    }

    const { exporters } = server.plugins['webhook-exporter'];
    await visitor.send(form, `${at}/edit`);
    t.match(await exporters.show(exporter.id), SET, 'what is sent as it is shown stays');
    await exporters.update(exporter.id, UNSET as PlainSettings);
    await visitor.send(await visitor.get(`${at}/edit`), `${at}/edit`);
    t.match(await exporters.show(exporter.id), UNSET, 'what is unset as well');

    const { paths } = JSON.parse((await server.inject('/rest_api/v2/openapi.json')).payload);
    const { post, get } = paths['/admin-console/exporters'];
    const { patch } = paths['/admin-console/exporters/{id}'];
    const described = [post.requestBody, patch.requestBody, get.responses[200]].map(({ content }) => content['application/json'].schema);
    for (const { properties, items } of described) {
        const missing = SETTING_NAMES.filter((name) => !Object.hasOwn(properties ?? items.properties, name));
        t.strictSame(missing, [], 'the document of the API has each');
    }
});

/** What a command sends to the server of its data folder. */
async function sentBy(t: Test, ...args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
    const path = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(path, { recursive: true }));
    const folder = dataFolder(path);
    let sent = '';
    const server = createServer(async (request, response) => {
        sent = await text(request);
        response.end('{}');
    }).listen(folder.socket);
    t.teardown(() => server.close());
    await once(server, 'listening');
    writeFileSync(folder.server, JSON.stringify({ pid: process.pid, socket: folder.socket }));
    t.match(await said([...args, '--data', path, '--json']), { code: 0 });
    return JSON.parse(sent);
}

t.test('the command line has a flag for each, and another one for what may be unset', async (t) => {
    const longOf = (name: SettingName): string => PLAIN_SETTINGS[name].flag.split(' ')[0] ?? '';
    const folder = t.testdir(byPlainSetting((_, name) => JSON.stringify(SET[name])));
    const flags = SETTING_NAMES.flatMap((name): readonly string[] => {
        const { as } = PLAIN_SETTINGS[name];
        const value = SET[name];
        if (as === 'choices') {
            return (value as readonly string[]).flatMap((each) => [longOf(name), each]);
        }
        if (as === 'json') {
            return [longOf(name), join(folder, name)];
        }
        return as === 'flag' ? [longOf(name)] : [longOf(name), String(value)];
    });
    t.match(await sentBy(t, 'exporters', 'create', '--url', 'https://receiver.example/', ...flags), SET);

    const unsettable = SETTING_NAMES.filter((name) => UNSET[name] === null || UNSET[name] === false);
    const unsetting = unsettable.map((name) => longOf(name).replace('--', '--no-'));
    const unset = Object.fromEntries(unsettable.map((name) => [name, UNSET[name]]));
    t.same(await sentBy(t, 'exporters', 'update', 'an-id', ...unsetting), { ...unset, start: false });
});
