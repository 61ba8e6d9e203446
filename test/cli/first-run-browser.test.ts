import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { inBrowser, WAYS } from '../plugins/admin-console/browsing.ts';
import { answering } from '../plugins/admin-console/host.ts';
import { watchedPage } from '../support/browser.ts';
import { dataOf, fixture, json, serveIn } from '../support/served.ts';

/*
 * The first minutes of somebody who has nothing but the address: each next step is said, or linked, by the page that is shown.
 */

inBrowser('somebody new makes a key, adds an exporter, finds out why a delivery fails, mends that and replays it', async (t, browser) => {
    for (const way of ['with scripts', 'without scripts']) {
        const data = dataOf(t);
        const { served, server } = await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' }, data);
        const origin = new URL(served.url).origin;
        const { page, complaints, close } = await watchedPage(browser, origin, { baseURL: origin, ...WAYS[way] });
        await page.goto((await json<{ url: string }>(data, 'console')).url);
        await firstRun(t, page, data);
        await close();
        t.same(complaints, [], way);
        server.kill('SIGKILL');
    }
});

async function firstRun(t: Test, page: Page, data: string): Promise<void> {
    const receiver = await answering(t);
    receiver.status = 401;
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await page.getByRole('link', { name: 'Create an API Key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('mine');
    await page.getByRole('button', { name: 'Create an API Key' }).click();
    await page.locator('#shown-key').waitFor();

    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Add Data Exporter' }).click();
    await page.getByRole('textbox', { name: /^URL/ }).fill(receiver.url);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#test').getByText('Answered 401').waitFor();
    await page.locator('#test').getByText('The receiver wants credentials or a header').waitFor();

    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('scanwire events publish KIND FILE').waitFor();
    await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json'));
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('cell', { name: 'waits for its next try' }).waitFor();
    await page
        .getByRole('row', { name: /investigation/ })
        .getByRole('link', { name: 'client_error' })
        .click();
    await page.getByText('Give the exporter the credentials').waitFor();
    receiver.status = 204;
    await page.getByRole('button', { name: 'Try it now' }).click();
    await page.getByText('It is sent once more').waitFor();
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('cell', { name: 'delivered' }).first().waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'What needs attention' }).waitFor();
    t.equal(await page.getByRole('heading', { name: 'First steps' }).count(), 0, 'they are done');
}
