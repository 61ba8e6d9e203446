import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { inBrowsers, type Opened } from './browsing.ts';

inBrowsers('people make, look at and revoke keys in a browser', keys);

async function keys(t: Test, { page, check, expect, scripts }: Opened): Promise<void> {
    await page.goto('/admin');
    await page.getByRole('link', { name: 'Create an API Key' }).waitFor();
    await check('Overview, at first');
    await page.getByRole('link', { name: 'Create an API Key' }).click();
    await page.getByText('There is no key yet').waitFor();
    t.equal(await page.title(), 'API Keys · Administration');
    await check('API Keys, empty');
    await page.getByRole('textbox', { name: 'Name' }).fill('<b>nightly</b>');
    await page.getByText('Scopes, workspaces, expiry').click();
    await page.getByLabel('admin', { exact: true }).check();
    await page.getByRole('textbox', { name: 'Workspaces' }).fill('none');
    expect('400 /admin/keys');
    await page.getByRole('button', { name: 'Create an API Key' }).click();
    await page.getByText('workspaces[0] must be a number').first().waitFor();
    t.equal(await page.getByRole('textbox', { name: 'Name' }).inputValue(), '<b>nightly</b>', 'what was typed is kept');
    await check('API Keys, refused');
    await page.getByRole('textbox', { name: 'Workspaces' }).fill('');
    await page.getByRole('button', { name: 'Create an API Key' }).click();
    const key = page.locator('#shown-key');
    await key.waitFor();
    const text = await key.textContent();
    t.match(String(text), /^scw_\w{49}$/);
    if (scripts) {
        await page.getByRole('button', { name: 'Copy' }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        t.equal(await page.evaluate('navigator.clipboard.readText()'), text, 'all of it');
    }
    await check('API Keys, made');
    await page.getByRole('link', { name: 'API Keys' }).click();
    await key.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /Show the full key of <b>nightly<\/b>/ }).click();
    await key.waitFor();
    t.equal(await key.textContent(), text);
    await page.getByText('Revoke', { exact: true }).click();
    await check('API Keys, asked');
    await page.getByRole('button', { name: 'Revoke <b>nightly</b>' }).click();
    await page.getByText('The key was revoked').waitFor();
    await page.waitForURL(({ pathname }) => pathname === '/admin/keys');
    await check('API Keys, revoked');

    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('cell', { name: 'revokeKey' }).waitFor();
    await check('Audit');
    await page.getByLabel('Operation').fill('revokeKey');
    await page.getByRole('button', { name: 'Show' }).click();
    // Between two pages there are no cells either: those of the next one are waited for.
    await page.waitForURL(/[?&]operation=revokeKey\b/);
    await page.getByRole('cell', { name: 'createKey' }).first().waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'revokeKey' }).waitFor();
    await page.waitForLoadState();
    t.equal(await page.getByRole('rowheader').count(), 1, 'only what is asked for');
}

inBrowsers('people are told when the server is at work, and when it is away', async (t, { page, complaints, scripts }) => {
    await page.goto('/admin/keys');
    // Without scripts the browser says so itself.
    if (scripts) {
        await pressOnce(t, page);
    }
    await page.context().setOffline(true);
    if (scripts) {
        await page.getByRole('link', { name: 'Audit' }).click();
        await page.getByText('The server cannot be reached').waitFor();
    }
    await page.context().setOffline(false);
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await page.getByText('The server cannot be reached').waitFor({ state: 'hidden' });
    complaints.splice(0, complaints.length, ...complaints.filter((text) => !/ERR_INTERNET_DISCONNECTED|Failed to fetch/.test(text)));
});

/** A button that was pressed says that it is at work, and cannot be pressed again. */
async function pressOnce(t: Test, page: Page): Promise<void> {
    let asked = 0;
    const held = new Promise<() => void>((resolve) => {
        void page.route('**/admin/keys', async (route) => {
            asked += 1;
            await new Promise<void>((go) => resolve(go));
            await route.continue();
        });
    });
    await page.getByRole('textbox', { name: 'Name' }).fill('pressed');
    await page.getByRole('button', { name: 'Create an API Key' }).click();
    const go = await held;
    const pressed = "document.querySelector('form.htmx-request button')";
    t.equal(await page.evaluate(`getComputedStyle(${pressed}, '::after').content`), '" …"');
    t.equal(await page.evaluate(`getComputedStyle(${pressed}).pointerEvents`), 'none');
    go();
    await page.getByText('The key pressed was made').waitFor();
    t.equal(asked, 1);
    await page.unroute('**/admin/keys');
}
