import type { Server } from '@hapi/hapi';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { barriers, findBrowser, fits, listsFit, startBrowser, type WatchedPage, watchedPage } from '../../support/browser.ts';
import { embedded, host, type Kept, onServers, register, systemOf } from './host.ts';

const DESK = { viewport: { width: 1280, height: 900 } };

/** How people look at the screens. */
export const WAYS: Readonly<Record<string, BrowserContextOptions>> = {
    'with scripts': DESK,
    'without scripts': { ...DESK, javaScriptEnabled: false },
    'on a phone in the dark': { viewport: { width: 375, height: 700 }, colorScheme: 'dark', isMobile: true, hasTouch: true },
};

/** Looks, each with where it is kept what people look at: with scripts and without, in the embedded database and on servers. */
const LOOKS: readonly (readonly [way: string, kept: (t: Test) => Promise<Kept>])[] = [
    ['with scripts', embedded],
    ['without scripts', embedded],
    ['without scripts', onServers],
    ['on a phone in the dark', onServers],
];

export interface Opened extends Omit<WatchedPage, 'close'> {
    readonly server: Server;
    /** Whether the browser runs any. */
    readonly scripts: boolean;
    /** Looks for what keeps people out of the page that is shown. */
    check(title: string): Promise<void>;
    /** Waits for what comes by itself; where no script runs, by loading the page again. */
    see(what: Locator): Promise<void>;
}

/** A host with screens, and somebody who looks at them. */
async function opened(t: Test, browser: Browser, options: BrowserContextOptions, kept: Kept): Promise<Opened> {
    const server = await host({ host: '127.0.0.1' }, kept);
    await register(server, { system: systemOf(server, kept), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const origin = server.info.uri;
    const scripts = options.javaScriptEnabled !== false;
    const extraHTTPHeaders = { session: 'ada' };
    const watched = await watchedPage(browser, origin, { baseURL: origin, extraHTTPHeaders, ...options });
    t.teardown(watched.close);
    return {
        ...watched,
        server,
        scripts,
        check: (title) => checked(t, watched.page, title, options),
        async see(what) {
            if (scripts) {
                await what.first().waitFor();
            } else {
                await until(async () => {
                    await watched.page.reload();
                    return (await what.count()) > 0;
                });
            }
        },
    };
}

/** Looks for what keeps people out of the page that is shown. What looks is a script itself, though not one of the page's. */
export async function checked(t: Test, page: Page, title: string, { javaScriptEnabled, isMobile }: BrowserContextOptions): Promise<void> {
    // Of what was waited for it may be the first half that has come.
    await page.waitForLoadState();
    if (javaScriptEnabled !== false) {
        t.same(await barriers(page), [], title);
        t.ok(await fits(page), `${title}: fits the screen`);
        if (isMobile === true) {
            t.ok(await listsFit(page), `${title}: lists are read without scrolling to the side`);
        }
    }
}

const skip: string | false = findBrowser() === null ? 'Chromium is not installed' : false;

type Act = (t: Test, opened: Opened) => Promise<void>;

/** A test in a real browser, in each of the ways in which people look, at each of the stores; a page that complains, or calls anybody else, fails it. */
export function inBrowsers(title: string, act: Act): void {
    inBrowser(title, async (t, browser) => {
        for (const [way, kept] of LOOKS) {
            const title = `${way}, ${kept === embedded ? 'embedded' : 'on servers'}`;
            await t.test(title, { timeout: 200_000 }, async (t) =>
                acted(t, act, browser, WAYS[way] as BrowserContextOptions, await kept(t)),
            );
        }
    });
}

async function acted(t: Test, act: Act, browser: Browser, options: BrowserContextOptions, kept: Kept): Promise<void> {
    const seen = await opened(t, browser, options, kept);
    await act(t, seen);
    t.same([...seen.complaints, ...seen.unrefused], [], 'nothing complains, nobody else is called, and what was expected is refused');
}

/** One for all tests of a file: to start it takes longer than many of them, and what one sees is in a context of its own. */
let started: Promise<Browser> | undefined;
t.teardown(async () => (await started)?.close());

/** A test with a browser, which other tests of the file have used before. */
export function inBrowser(title: string, act: (t: Test, browser: Browser) => Promise<void>): void {
    // The list of what may be skipped has one name for all of them.
    t.test(skip === false ? title : 'people do all they can in a browser', { skip, timeout: 600_000 }, async (t) => {
        started ??= startBrowser();
        await act(t, await started);
    });
}
