import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import type { System } from '../../plugins/admin-console/index.ts';
import { inBrowser } from '../plugins/admin-console/browsing.ts';
import { answering, host, investigation, register, systemOf } from '../plugins/admin-console/host.ts';
import { Visitor } from '../plugins/admin-console/visitor.ts';
import { watchedPage } from '../support/browser.ts';

/*
 * Whatever text a page gets from anywhere is hostile: names, URLs, headers, owners, outcomes, what receivers and their certificates say. All of
 * it is markup and template here, but for the few words by which the pages choose what to say.
 */

const HOSTILE = `"'><img src=x onerror=alert(1)></textarea></select></script><script>alert(1)</script>{{ 7 | times: 191731 }}`;
const RUN = /<img|<script>|1342117/;

/** By these the pages choose among texts of their own. */
const CHOICES: ReadonlySet<string> = new Set(['state', 'type', 'trust', 'breaker', 'authentication', 'afterExhausted', 'span']);

function spoiltValue(value: unknown, key = ''): unknown {
    if (key === 'stopReason' || (typeof value === 'string' && !CHOICES.has(key))) {
        return HOSTILE;
    }
    if (Array.isArray(value)) {
        return value.map((item) => spoiltValue(item, key));
    }
    return typeof value === 'object' && value !== null && !(value instanceof Date)
        ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name, spoiltValue(field, name)]))
        : value;
}

/** The same part of a system, all of whose answers are hostile. */
function spoilt<Part extends object>(part: Part): Part {
    return new Proxy(part, {
        get(target, name) {
            const member: unknown = Reflect.get(target, name);
            if (typeof member === 'function') {
                return async (...given: unknown[]) => spoiltValue(await member.apply(target, given));
            }
            return typeof member === 'object' && member !== null ? spoilt(member) : member;
        },
    });
}

/** A host whose pages show nothing but what is hostile, and their paths. */
async function spoiltHost(t: Test): Promise<{ readonly server: Server; readonly paths: readonly string[] }> {
    const server = await host({ host: '127.0.0.1' });
    const { keys, webhooks, license, audit, ...others } = systemOf(server) as System & { readonly webhooks: Required<System['webhooks']> };
    const { id } = await keys.create('nightly');
    await audit.record({ actor: 'ada', operation: 'createKey', subject: id }, async () => null);
    await register(server, {
        system: { ...others, keys: spoilt(keys), webhooks: spoilt(webhooks), license: spoilt(license), audit: spoilt(audit) },
        screens: {},
    });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const receiver = await answering(t);
    const { exporter } = await webhooks.exporters.create({ url: receiver.url, headers: [['X-Key', 'v']], owner: 'acme' });
    const { test } = await webhooks.exporters.start(exporter.id);
    receiver.status = 500;
    receiver.body = HOSTILE;
    const [delivery = ''] = (await webhooks.publish('idr_investigation_created', investigation, { owner: 'acme' })).deliveries;
    await until(async () => (await webhooks.deliveries.show(delivery)).history.some(({ outcome }) => outcome !== null));
    await webhooks.deliveries.replays.begin({ exporterId: exporter.id, failedSince: new Date(0) });
    const asked = encodeURIComponent(HOSTILE);
    return {
        server,
        paths: [
            '/overview',
            '/keys',
            '/exporters',
            '/exporters/new',
            `/exporters/${exporter.id}?done=${asked}&warning=${asked}`,
            `/exporters/${exporter.id}?test=${test.deliveryId}`,
            `/exporters/${exporter.id}/edit`,
            '/deliveries',
            `/deliveries?kind=${asked}&eventId=${asked}&since=${asked}&state=${asked}&outcome=${asked}&exporterId=${asked}`,
            `/deliveries/${delivery}`,
            `/deliveries/${asked}`,
            '/deliveries/activity',
            `/deliveries/replays?exporterId=${asked}&what=${asked}&done=${asked}`,
            '/audit',
            `/audit?actor=${asked}&operation=${asked}&since=${asked}`,
        ],
    };
}

t.test('shows nothing as markup, wherever it comes from', async (t) => {
    const { server, paths } = await spoiltHost(t);
    const visitor = new Visitor(server);
    for (const path of paths) {
        const { html, status } = await visitor.get(`/admin${path}`);
        t.ok(status < 500, `${path}: ${status}`);
        t.notMatch(html, RUN, path);
        t.ok(status === 404 || html.includes('&lt;img src=x'), `${path} shows it as it is`);
    }
    const fields = {
        name: HOSTILE,
        url: HOSTILE,
        headerName: HOSTILE,
        headerValue: HOSTILE,
        filter: HOSTILE,
        owner: HOSTILE,
        preview: 'yes',
    };
    const form = await visitor.get('/admin/exporters/new');
    for (const sent of [fields, { ...fields, sampleKind: HOSTILE }, { ...fields, filter: '' }]) {
        const { html, status } = await visitor.send(form, '/admin/exporters', { ...sent, sampleBody: JSON.stringify({ title: HOSTILE }) });
        t.equal(status, 200);
        t.notMatch(html, RUN);
    }
    const keys = await visitor.get('/admin/keys');
    t.notMatch((await visitor.send(keys, '/admin/keys', { name: HOSTILE, workspaces: HOSTILE, scopes: [HOSTILE] })).html, RUN);
});

inBrowser('a browser runs nothing of it', async (t, browser) => {
    const { server, paths } = await spoiltHost(t);
    const baseURL = server.info.uri;
    const { page, complaints, expect, close } = await watchedPage(browser, baseURL, { baseURL, extraHTTPHeaders: { session: 'ada' } });
    t.teardown(close);
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    for (const path of paths) {
        const { status } = await new Visitor(server).get(`/admin${path}`);
        if (status >= 400) {
            expect(`${status} /admin${path.split('?', 1)[0]}`);
        }
        await page.goto(`/admin${path}`);
        t.equal(await page.locator('img, [onerror], body script, iframe').count(), 0, path);
    }
    await page.goto('/admin/deliveries');
    await page.getByText('Changes are shown as they happen').waitFor();
    await server.plugins['webhook-exporter'].publish('idr_investigation_created', investigation, { owner: 'acme' });
    await page.getByText('3 deliveries').waitFor();
    t.equal(await page.locator('img, [onerror]').count(), 0, 'what comes later neither');
    // An address may hold what is no time; the browser leaves it out of the field and says so.
    t.same(
        complaints.filter((text) => !text.includes('does not conform to the required format')),
        [],
    );
});
