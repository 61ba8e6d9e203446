import type { Server } from '@hapi/hapi';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { barriers, findBrowser, fits, startBrowser, watchedPage } from '../../support/browser.ts';
import { host, register, systemOf } from './host.ts';

/*
 * The screens in a real browser: with scripts and without, small and large, light and dark. None of them may complain, call anybody
 * else, or keep anybody out.
 */

const VARIANTS: Readonly<Record<string, BrowserContextOptions>> = {
    'with scripts': { viewport: { width: 1280, height: 900 } },
    'without scripts': { javaScriptEnabled: false, viewport: { width: 1280, height: 900 } },
    'on a phone in the dark': { viewport: { width: 375, height: 700 }, colorScheme: 'dark', isMobile: true, hasTouch: true },
};

const skip = findBrowser() === null ? 'Chromium is not installed' : false;

t.test('people do all they can in a browser', { skip }, async (t) => {
    const browser = await startBrowser();
    t.teardown(() => browser.close());
    for (const [title, options] of Object.entries(VARIANTS)) {
        await t.test(title, async (t) => {
            const { page, check, complaints } = await opened(t, browser, options);
            await keys(t, page, check);
            t.same(complaints, [], 'nothing complains and nobody else is called');
        });
    }
});

interface Opened {
    readonly page: Page;
    readonly server: Server;
    readonly complaints: readonly string[];
    /** Looks for what keeps people out of the page that is shown. */
    check(title: string): Promise<void>;
}

/** A host with screens, and somebody who looks at them. */
async function opened(t: Test, browser: Browser, options: BrowserContextOptions): Promise<Opened> {
    const server = await host({ host: '127.0.0.1' });
    await register(server, { system: systemOf(server), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const origin = server.info.uri;
    const extraHTTPHeaders = { session: 'ada' };
    const { page, complaints, close } = await watchedPage(browser, origin, { baseURL: origin, extraHTTPHeaders, ...options });
    t.teardown(close);
    return {
        page,
        server,
        complaints,
        async check(title) {
            // What looks is a script itself, though not one of the page's.
            if (options.javaScriptEnabled !== false) {
                t.same(await barriers(page), [], title);
                t.ok(await fits(page), `${title}: fits the screen`);
            }
        },
    };
}

async function keys(t: Test, page: Page, check: Opened['check']): Promise<void> {
    await page.goto('/admin');
    t.equal(await page.title(), 'API Keys · Administration');
    await check('API Keys, empty');
    await page.getByRole('textbox', { name: 'Name' }).fill('<b>nightly</b>');
    await page.getByText('Scopes, workspaces, end').click();
    await page.getByLabel('admin', { exact: true }).check();
    await page.getByRole('textbox', { name: 'Workspaces' }).fill('none');
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
    t.equal(new URL(page.url()).pathname, '/admin/keys');
    await check('API Keys, revoked');
}
