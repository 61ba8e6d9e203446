/*
 * `npm run screenshots`: pictures of every page of a served deployment with a day behind it, light, dark and as a phone shows them, into
 * `docs/screenshots/`. With names, only those: `npm run screenshots -- exporters overview`.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { json } from '../support/served.ts';
import { fill } from './content.ts';

const TO = 'docs/screenshots';

/** In the folder of the run, so that no page shows where that is. */
const DATA = 'scanwire-data';

/** The receivers exist in the pictures only: all names have an address of documentation. */
const KNOWN_NAMES = `--import data:text/javascript,${encodeURIComponent(`
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
const { lookup } = dns;
const known = (_, __, done) => done(null, [{ address: '192.0.2.17', family: 4 }]);
dns.lookup = (name, ...more) => (/[.]example([.]com|[.]net)?$/.test(name) ? known : lookup)(name, ...more);
syncBuiltinESMExports();
`)}`;

const DESK = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
    light: { viewport: DESK, colorScheme: 'light' },
    dark: { viewport: DESK, colorScheme: 'dark' },
    phone: { viewport: PHONE, isMobile: true, hasTouch: true, colorScheme: 'light' },
};

/** The page that all begin with. */
const SIGN_IN = 'sign-in';

/** How somebody gets to a page from the first one. */
const PAGES: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
    overview: async (page) => page.goto('/admin/overview'),
    keys: async (page) => page.goto('/admin/keys'),
    exporters: async (page) => page.goto('/admin/exporters'),
    exporter: async (page) => {
        await page.goto('/admin/exporters');
        await page.getByRole('link', { name: 'Ticketing' }).click();
        await page.getByRole('heading', { name: 'Ticketing', level: 1 }).waitFor();
    },
    'add-exporter': async (page) => page.goto('/admin/exporters/new'),
    authentication: async (page) => {
        await page.goto('/admin/exporters/new');
        await page.getByText('More, all of it optional').click();
        await page.getByText('OAuth 2', { exact: true }).click();
        await page.getByText('Authentication and network', { exact: true }).scrollIntoViewIfNeeded();
        await page.evaluate('document.querySelector(\'[name="rate"]\').scrollIntoView()');
    },
    deliveries: async (page) => {
        await page.goto('/admin/deliveries');
        await page.getByText('Changes are shown as they happen').waitFor();
        // On a phone what is asked for fills the screen.
        if (page.viewportSize()?.width === PHONE.width) {
            await page.evaluate('document.querySelector("[data-live]").scrollIntoView()');
        }
    },
    delivery: async (page) => {
        await page.goto('/admin/deliveries?state=exhausted');
        await page.locator('tbody th a').first().click();
        await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    },
    activity: async (page) => page.goto('/admin/deliveries/activity'),
    replays: async (page) => page.goto('/admin/deliveries/replays'),
    audit: async (page) => page.goto('/admin/audit'),
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => name !== SIGN_IN && !Object.hasOwn(PAGES, name));
if (unknown.length > 0) {
    process.stderr.write(`Unknown page ${unknown.join(', ')}. There are ${[SIGN_IN, ...Object.keys(PAGES)].join(', ')}.\n`);
    process.exit(2);
}

const folder = await mkdtemp(join(tmpdir(), 'scanwire-screenshots-'));
try {
    const data = join(folder, DATA);
    await fill(data);
    await served(data, shoot);
} finally {
    await rm(folder, { recursive: true, force: true });
}

/** Does something while the deployment runs. */
async function served(data: string, act: (data: string, origin: string) => Promise<void>): Promise<void> {
    const server = startScanwire(['serve', '--data', DATA, '--port', '0', '--json'], {
        cwd: folder,
        env: { NODE_OPTIONS: KNOWN_NAMES, SCANWIRE_RESOLVER: 'system' },
    });
    try {
        const { url } = await nextJson(server, linesOf(server));
        await act(data, new URL(String(url)).origin);
    } finally {
        server.kill('SIGTERM');
        await once(server, 'exit');
    }
}

async function shoot(data: string, origin: string): Promise<void> {
    await mkdir(TO, { recursive: true });
    const browser = await startBrowser();
    try {
        for (const [look, options] of Object.entries(LOOKS)) {
            await shootAll(browser, data, origin, look, options);
        }
    } finally {
        await browser.close();
    }
}

/** What complains is told of, so that no picture is kept of a page that is broken. */
async function shootAll(browser: Browser, data: string, origin: string, look: string, options: BrowserContextOptions): Promise<void> {
    const { page, complaints, close } = await watchedPage(browser, origin, { baseURL: origin, ...options });
    const shot = async (name: string, go: (page: Page) => Promise<unknown>): Promise<void> => {
        if (names.length === 0 || names.includes(name)) {
            await go(page);
            const file = join(TO, `${name}-${look}.webp`);
            const picture = await pictureOf(page);
            await writeFile(file, picture);
            process.stdout.write(`${file} ${picture.length}\n`);
        }
    };
    await page.goto((await json<{ url: string }>(data, 'console')).url);
    await shot(SIGN_IN, async () => {});
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    for (const [name, go] of Object.entries(PAGES)) {
        await shot(name, go);
    }
    await close();
    if (complaints.length > 0) {
        throw new Error(`The pages complain: ${complaints.join('; ')}`);
    }
}

/** In a form that playwright has no name for: a third of the size of PNG. */
async function pictureOf(page: Page): Promise<Buffer> {
    const client = await page.context().newCDPSession(page);
    const { data } = await client.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
    await client.detach();
    return Buffer.from(data, 'base64');
}
