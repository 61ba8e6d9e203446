import type { Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { inBrowser, WAYS } from '../plugins/admin-console/browsing.ts';
import { receiver } from '../plugins/admin-console/host.ts';
import { watchedPage } from '../support/browser.ts';
import { json, serveIn, usedDataOf } from '../support/served.ts';

/*
 * The first minutes of somebody who has nothing but the address: each next step is said, or linked, by the page that is shown.
 */

inBrowser('somebody new makes a key, adds an exporter, finds out why a delivery fails, mends that and replays it', async (t, browser) => {
    for (const way of ['with scripts', 'without scripts']) {
        const data = await usedDataOf(t);
        const { served, server } = await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' }, data);
        const origin = new URL(served.url).origin;
        const { page, complaints, close } = await watchedPage(browser, origin, { baseURL: origin, ...WAYS[way] });
        await page.goto((await json<{ url: string }>(data, 'console')).url);
        await firstRun(t, page);
        await close();
        t.same(complaints, [], way);
        server.kill('SIGKILL');
    }
});

/** Waits for what comes by itself; where no script runs, by loading the page again. */
async function waited(page: Page, what: Locator): Promise<void> {
    await until(async () => {
        const isThere = (await what.count()) > 0;
        if (!isThere) {
            await page.reload();
        }
        return isThere;
    });
}

async function firstRun(t: Test, page: Page): Promise<void> {
    // Nothing is tried again by itself meanwhile.
    const url = await receiver(t, ({ headers }) => (headers['x-token'] === 'letmein' ? 204 : 401), { 'retry-after': '3600' });
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await page.getByRole('link', { name: 'Create an API Key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('mine');
    await page.getByRole('button', { name: 'Create an API Key' }).click();
    await page.locator('#shown-key').waitFor();

    await page.getByRole('link', { name: 'Add Data Exporter' }).click();
    await page.getByRole('textbox', { name: /^URL \(required\)/ }).fill(url);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#test').getByText('Answered 401').waitFor();
    await page.locator('#test').getByText('The receiver wants credentials or a header').waitFor();

    await page.getByRole('link', { name: 'Publish a first event' }).click();
    await page.getByRole('button', { name: 'Publish a sample event' }).click();
    await page.getByText('The sample event was published').waitFor();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    await waited(page, page.getByRole('cell', { name: /failed, next try in/ }));
    await page.getByRole('link', { name: 'idr_investigation_created' }).click();
    await page.getByText('Give the exporter the credentials').waitFor();
    await page.getByRole('link', { name: 'Change its settings' }).click();
    await page.waitForURL(/\/edit#headers$/);
    await page.getByPlaceholder('Header, such as X-Api-Key').fill('X-Token');
    await page.getByPlaceholder('Value, such as 1234abcd').fill('letmein');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#test').getByText('Answered 204').waitFor();
    await page.getByText('The test since then has arrived').waitFor();
    await page.getByRole('button', { name: 'Resend what waits' }).click();
    await page.getByText('1 delivery was resent').waitFor();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    await waited(page, page.getByRole('row', { name: /^idr_investigation_created .* delivered/ }));
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'What needs attention' }).waitFor();
    await page.waitForLoadState();
    t.equal(await page.getByRole('heading', { name: 'First steps' }).count(), 0, 'they are done');
}
