import type { Server } from '@hapi/hapi';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { barriers, findBrowser, fits, listsFit, startBrowser, watchedPage } from '../../support/browser.ts';
import { host, type Kept, onServers, register, systemOf } from './host.ts';

const DESK = { viewport: { width: 1280, height: 900 } };

/** How people look at the screens. */
const VARIANTS: Readonly<Record<string, BrowserContextOptions>> = {
    'with scripts': DESK,
    'without scripts': { ...DESK, javaScriptEnabled: false },
    'on a phone in the dark': { viewport: { width: 375, height: 700 }, colorScheme: 'dark', isMobile: true, hasTouch: true },
};

export interface Opened {
    readonly page: Page;
    readonly server: Server;
    readonly complaints: readonly string[];
    /** Whether the browser runs any. */
    readonly scripts: boolean;
    /** Looks for what keeps people out of the page that is shown. */
    check(title: string): Promise<void>;
}

/** A host with screens, and somebody who looks at them. */
async function opened(t: Test, browser: Browser, options: BrowserContextOptions, kept?: Kept): Promise<Opened> {
    const server = await host({ host: '127.0.0.1' }, kept);
    await register(server, { system: systemOf(server, kept), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const origin = server.info.uri;
    const scripts = options.javaScriptEnabled !== false;
    const extraHTTPHeaders = { session: 'ada' };
    const { page, complaints, close } = await watchedPage(browser, origin, { baseURL: origin, extraHTTPHeaders, ...options });
    t.teardown(close);
    return {
        page,
        server,
        complaints,
        scripts,
        async check(title) {
            // What looks is a script itself, though not one of the page's.
            if (scripts) {
                t.same(await barriers(page), [], title);
                t.ok(await fits(page), `${title}: fits the screen`);
                if (options.isMobile === true) {
                    t.ok(await listsFit(page), `${title}: lists are read without scrolling to the side`);
                }
            }
        },
    };
}

const skip: string | false = findBrowser() === null ? 'Chromium is not installed' : false;

type Act = (t: Test, opened: Opened) => Promise<void>;

/** A test in a real browser, in each of the ways in which people look; a page that complains, or calls anybody else, fails it. */
export function inBrowsers(title: string, act: Act): void {
    inBrowser(title, async (t, browser) => {
        for (const [way, options] of Object.entries(VARIANTS)) {
            await t.test(way, { timeout: 200_000 }, (t) => acted(t, act, browser, options));
        }
    });
}

/** The same on PostgreSQL and Redis, in one way: what is shown depends on the stores, how it is shown does not. */
export function onServersInBrowser(title: string, act: Act): void {
    inBrowser(title, async (t, browser) => acted(t, act, browser, DESK, await onServers(t)));
}

async function acted(t: Test, act: Act, browser: Browser, options: BrowserContextOptions, kept?: Kept): Promise<void> {
    const seen = await opened(t, browser, options, kept);
    await act(t, seen);
    t.same(seen.complaints, [], 'nothing complains and nobody else is called');
}

/** One for all tests of a file: to start it takes longer than many of them, and what one sees is in a context of its own. */
let started: Promise<Browser> | undefined;
t.teardown(async () => (await started)?.close());

/** A test with a browser, which other tests of the file have used before. */
export function inBrowser(title: string, act: (t: Test, browser: Browser) => Promise<void>): void {
    t.test(title, { skip, timeout: 600_000 }, async (t) => {
        started ??= startBrowser();
        await act(t, await started);
    });
}
