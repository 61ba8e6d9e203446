import type { BrowserContextOptions, Page } from 'playwright-core';
import type { Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { watchedPage } from '../../support/browser.ts';
import { checked, inBrowser, WAYS } from './browsing.ts';
import { answering, host, investigation, register, systemOf } from './host.ts';

/*
 * What other tests of pages leave out: looks that none of them has, and that all is reached without a mouse.
 */

const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
    'in the dark': { ...WAYS['with scripts'], colorScheme: 'dark' },
    'on a phone by daylight': { ...WAYS['on a phone in the dark'], colorScheme: 'light' },
};

/** A host in which something has failed, and the paths of all of its pages. */
async function failingHost(t: Test) {
    const server = await host({ host: '127.0.0.1' });
    await register(server, { system: systemOf(server), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const receiver = await answering(t);
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, name: 'alerts', schedule: [86_400_000] });
    await exporters.start(exporter.id);
    receiver.status = 500;
    const [id = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    await until(async () => (await deliveries.show(id)).lastCode === 'server_error');
    await server.plugins['token-auth'].create('nightly');
    await deliveries.replays.begin({ exporterId: exporter.id, failedSince: new Date(0), rate: 1 });
    const at = `/exporters/${exporter.id}`;
    const lists = ['/overview', '/keys', '/exporters', '/deliveries', '/deliveries/activity', '/deliveries/replays', '/audit'];
    return { server, paths: [...lists, at, `${at}/edit`, '/exporters/new', `/deliveries/${id}`] };
}

inBrowser('pages keep nobody out in any light, on a desk and on a phone', async (t, browser) => {
    const { server, paths } = await failingHost(t);
    const baseURL = server.info.uri;
    for (const [look, options] of Object.entries(LOOKS)) {
        const { page, complaints, expect, close } = await watchedPage(browser, baseURL, {
            baseURL,
            extraHTTPHeaders: { session: 'ada' },
            ...options,
        });
        expect('404 /admin/exporters/nobody');
        for (const path of [...paths, '/exporters/nobody']) {
            await page.goto(`/admin${path}`);
            await checked(t, page, `${path} ${look}`, options);
        }
        await close();
        t.same(complaints, [], look);
    }
});

inBrowser('somebody without a mouse makes a key, and sees where on the page that is', async (t, browser) => {
    const { server } = await failingHost(t);
    const baseURL = server.info.uri;
    const { page, complaints, close } = await watchedPage(browser, baseURL, { baseURL, extraHTTPHeaders: { session: 'ada' } });
    await page.goto('/admin/overview');
    await page.keyboard.press('Tab');
    t.equal(await focused(page), 'To the content');
    t.ok(await page.getByRole('link', { name: 'To the content' }).isVisible());
    await tabbedTo(page, 'API Keys');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Create an API Key' }).waitFor();
    await page.goto('/admin/keys');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    // What all pages have was skipped.
    await until(async () => (await page.evaluate('document.activeElement.id')) === 'content');
    await tabbedTo(page, 'name');
    await until(() => isOutlined(page));
    await page.keyboard.type('by hand');
    await tabbedTo(page, 'Scopes, workspaces, expiry');
    await until(() => isOutlined(page));
    await page.keyboard.press('Enter');
    await tabbedTo(page, 'admin');
    await page.keyboard.press('Space');
    await tabbedTo(page, 'Create an API Key');
    await until(() => isOutlined(page));
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('The key by hand was made').waitFor();
    t.match((await server.plugins['token-auth'].list()).at(-1), { name: 'by hand', scopes: ['inventory:read', 'admin'] });
    await close();
    t.same(complaints, []);
});

/** What the one that has the focus says, or what a field is called in the form or stands for. */
async function focused(page: Page): Promise<string> {
    return String(
        await page.evaluate(`(({ value, type, name, textContent }) =>
            (type === 'checkbox' ? value : name || textContent).trim())(document.activeElement)`),
    );
}

/** Presses the key until that has the focus. */
async function tabbedTo(page: Page, what: string): Promise<void> {
    for (let pressed = 0; pressed < 60; pressed += 1) {
        await page.keyboard.press('Tab');
        if ((await focused(page)) === what) {
            return;
        }
    }
    throw new Error(`The key leads to no ${what}`);
}

/** Whether it can be seen what has the focus, which may come by and by. */
async function isOutlined(page: Page): Promise<boolean> {
    return (await page.evaluate(`(({ boxShadow, outlineStyle }) =>
        boxShadow !== 'none' || outlineStyle !== 'none')(getComputedStyle(document.activeElement))`)) as boolean;
}
