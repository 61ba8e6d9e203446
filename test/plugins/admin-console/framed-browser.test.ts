import { readFileSync } from 'node:fs';
import type { Server } from '@hapi/hapi';
import type { Browser, FrameLocator } from 'playwright-core';
import type { Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { watchedPage } from '../../support/browser.ts';
import { fixture } from '../../support/served.ts';
import { inBrowser } from './browsing.ts';
import { host, onServers, receiver, register, systemOf } from './host.ts';

/*
 * What a host shows its own customers: the pages of one owner, in a frame of a page of the host's.
 */

const KIND = 'idr_investigation_created';

/** A portal in which everybody sees what is acme's. @param frameAncestors Who may show the pages in a frame; nobody if absent. */
async function portal(t: Test, frameAncestors?: string): Promise<Server> {
    const kept = await onServers(t);
    const server = await host({ host: '127.0.0.1' }, kept);
    const { webhooks, audit } = systemOf(server, kept);
    await register(server, {
        instance: 'customers',
        system: { ...(webhooks && { webhooks }), ...(audit && { audit }) },
        owner: () => 'acme',
        routes: false,
        screens: { prefix: '/webhooks', ...(frameAncestors !== undefined && { frameAncestors }) },
    });
    server.route({
        method: 'GET',
        path: '/portal',
        handler: () =>
            '<!DOCTYPE html><html lang="en"><title>Portal</title><h1>Portal</h1><iframe title="Webhooks" src="/webhooks" width="1000" height="700"></iframe>',
    });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    return server;
}

async function visited(t: Test, browser: Browser, server: Server) {
    const baseURL = server.info.uri;
    const { page, complaints, close } = await watchedPage(browser, baseURL, { baseURL, extraHTTPHeaders: { session: 'ada' } });
    t.teardown(close);
    await page.goto('/portal');
    return { page, complaints, frame: page.frameLocator('iframe') };
}

/** An exporter of an owner that has got an event, by its name. */
async function deliveredTo(t: Test, server: Server, owner: string): Promise<void> {
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t), name: `alerts of ${owner}`, owner });
    await exporters.start(exporter.id);
    const body = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8'));
    const accepted = await publish(KIND, body, { owner });
    await until(async () => (await deliveries.show(accepted.deliveries[0] ?? '')).finishedAt !== null);
}

inBrowser('a customer looks after webhooks in a frame of the host', async (t, browser) => {
    const server = await portal(t, "'self'");
    await deliveredTo(t, server, 'other');
    const { page, complaints, frame } = await visited(t, browser, server);
    await frame.getByText('There is no exporter yet').waitFor();
    t.same(await frame.getByRole('navigation').getByRole('link').allTextContents(), ['Data Exporters', 'Deliveries']);
    await added(t, frame);

    await deliveredTo(t, server, 'acme');
    await frame.getByRole('link', { name: 'Deliveries', exact: true }).first().click();
    await frame.getByText('Changes are shown as they happen').waitFor();
    await frame.getByText('4 deliveries').waitFor();
    await deliveredTo(t, server, 'other');
    await deliveredTo(t, server, 'acme');
    // To each exporter of acme goes what was published of acme, and to a new one its test.
    await frame.getByText('8 deliveries').waitFor();
    t.notMatch(await frame.locator('body').textContent(), /of other/);
    t.notMatch(await frame.getByRole('combobox', { name: /^Exporter/ }).textContent(), /other/);
    await frame.getByRole('link', { name: 'Deliveries over time' }).click();
    await frame
        .getByRole('img', { name: /^Deliveries: 8 in all/ })
        .first()
        .waitFor();
    t.equal(new URL(page.url()).pathname, '/portal', 'all of it stays in the frame');
    t.same(complaints, []);
});

/** By the form, within the frame. */
async function added(t: Test, frame: FrameLocator): Promise<void> {
    await frame.getByRole('link', { name: 'Add Data Exporter' }).click();
    await frame.getByRole('textbox', { name: /^URL/ }).fill(await receiver(t));
    await frame.getByRole('textbox', { name: /^Name/ }).first().fill('mine');
    t.equal(await frame.getByRole('textbox', { name: /^Owner/, includeHidden: true }).count(), 0);
    await frame.getByRole('button', { name: 'Save' }).click();
    await frame.getByText('The exporter was saved').waitFor();
}

inBrowser('a host that was not named has no frame of the pages', async (t, browser) => {
    const { page, complaints, frame } = await visited(t, browser, await portal(t));
    await until(async () => complaints.length > 0);
    t.match(complaints[0], /frame-ancestors 'none'/);
    t.equal(await frame.getByText('Data Exporters').count(), 0);
    t.equal(await page.getByRole('heading', { name: 'Portal' }).count(), 1);
});
