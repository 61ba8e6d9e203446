import { checked, inBrowser, WAYS } from '../plugins/admin-console/browsing.ts';
import { watchedPage } from '../support/browser.ts';
import { json, serve, usedDataOf } from '../support/served.ts';

inBrowser('somebody signs in by a link of the command line, and out again', async (t, browser) => {
    const data = await usedDataOf(t);
    const { served } = await serve(t, data);
    const origin = new URL(served.url).origin;
    for (const [way, options] of Object.entries(WAYS)) {
        const { page, complaints, expect, unrefused, close } = await watchedPage(browser, origin, { baseURL: origin, ...options });
        await page.goto('/admin');
        await page.getByText('A link signs you in').waitFor();
        await checked(t, page, `${way}: Sign in, without a link`, options);
        const { url } = await json<{ url: string }>(data, 'console');
        await page.goto(url);
        await checked(t, page, `${way}: Sign in`, options);
        await page.getByRole('button', { name: 'Sign in with this browser' }).click();
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
        await checked(t, page, `${way}: Overview`, options);
        await page.getByRole('link', { name: 'API Keys' }).click();
        await page.getByRole('heading', { name: 'API Keys' }).waitFor();
        await page.getByRole('textbox', { name: 'Name' }).fill(way);
        await page.getByRole('button', { name: 'Create an API Key' }).click();
        await page.locator('#shown-key').waitFor();

        await page.getByRole('link', { name: 'Sign out' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
        await checked(t, page, `${way}: Sign out`, options);
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByText('A link signs you in').waitFor();
        await page.goto('/admin/keys');
        t.equal(new URL(page.url()).pathname, '/admin/sign-in', 'nothing is shown any more');
        await page.goto(url);
        expect('403 /admin/sign-in');
        await page.getByRole('button', { name: 'Sign in with this browser' }).click();
        await page.getByText('This link was used already').waitFor();
        await checked(t, page, `${way}: Sign in, refused`, options);
        await close();
        t.same([...complaints, ...unrefused], [], way);
    }
});
