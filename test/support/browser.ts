import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findOnPath } from './find-program.ts';

/** Path of a Chromium on this machine, null when there is none. */
export function findBrowser(): string | null {
    return findOnPath('chromium') ?? findOnPath('chromium-browser') ?? findOnPath('google-chrome');
}

/** A Chromium without a window. @throws Error when there is none on this machine. */
export async function startBrowser(): Promise<Browser> {
    const executablePath = findBrowser();
    if (executablePath === null) {
        throw new Error('Missing Chromium: install the Debian package chromium');
    }

    // As root, in a container with little shared memory, and without a process in reserve beside each page: half of them are never needed.
    return await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--renderer-process-limit=1'] });
}

/** A tab that writes down what it complains of, and every request to another host than those it was opened for. */
export interface WatchedPage {
    readonly page: Page;
    /** Errors of scripts, refusals by the content security policy, requests to others, and answers of 400 and above that were not asked for. */
    readonly complaints: string[];
    /** Says beforehand what the server is going to refuse, once: `400 /admin/exporters/{id}/edit`. */
    expect(refusal: string): void;
    /** What it was expected to refuse and has not yet. */
    readonly unrefused: readonly string[];
    close(): Promise<void>;
}

/** How Chromium begins to say that something was not answered with success, and the text of an id. */
const REFUSED = 'Failed to load resource: the server responded with a status of ';
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

export async function watchedPage(browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
    const context: BrowserContext = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
    // What comes late on a busy machine is no fault. What does not come is named, just before the time of the file is over.
    context.setDefaultTimeout(100_000);
    const page = await context.newPage();
    await slowedDown(page);
    const complaints: string[] = [];
    page.on('console', (message) => {
        // The status is looked at below, where the path is known.
        if (['error', 'warning'].includes(message.type()) && !message.text().startsWith(REFUSED)) {
            complaints.push(`${message.type()}: ${message.text()}`);
        }
    });
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('request', (request) => {
        const url = new URL(request.url());
        if (url.origin !== origin && url.protocol !== 'data:') {
            complaints.push(`request: ${request.url()}`);
        }
    });
    const expected: string[] = [];
    page.on('response', (response) => {
        const refusal = `${response.status()} ${new URL(response.url()).pathname.replaceAll(UUID, '{id}')}`;
        const index = expected.indexOf(refusal);
        if (index >= 0) {
            expected.splice(index, 1);
        } else if (response.status() >= 400) {
            complaints.push(`refusal: ${refusal}`);
        }
    });
    return {
        page,
        complaints,
        expect: (refusal) => expected.push(refusal),
        unrefused: expected,
        close: () => context.close(),
    };
}

/**
 * By as much as `SLOW_BROWSER` says: what passes with 6 does not depend on how quick this machine is. Requests are held for `HELD_REQUESTS` milliseconds:
 * what looks at a page too early still sees the one before.
 */
async function slowedDown(page: Page): Promise<void> {
    const rate = Number(process.env.SLOW_BROWSER ?? 1);
    if (rate > 1) {
        const client = await page.context().newCDPSession(page);
        await client.send('Emulation.setCPUThrottlingRate', { rate });
    }
    const held = Number(process.env.HELD_REQUESTS ?? 0);
    if (held > 0) {
        await page.context().route('**', async (route) => {
            await wait(held);
            await route.continue();
        });
    }
}

/** Whether all of the page is to be seen without scrolling to the side. */
export async function fits(page: Page): Promise<boolean> {
    return (await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')) === 0;
}

/** The same of every list that is laid out for a phone. */
export async function listsFit(page: Page): Promise<boolean> {
    return (await page.evaluate("[...document.querySelectorAll('.cards')].every((list) => list.scrollWidth <= list.clientWidth)")) === true;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** What keeps people out of the page, as axe sees it: rule and the elements. It runs beside the page, whose policy it need not pass. */
export async function barriers(page: Page): Promise<readonly string[]> {
    const client = await page.context().newCDPSession(page);
    const { frameTree } = await client.send('Page.getFrameTree');
    const world = await client.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
    const evaluate = async (expression: string): Promise<unknown> => {
        const contextId = world.executionContextId;
        const { result, exceptionDetails } = await client.send('Runtime.evaluate', {
            expression,
            contextId,
            awaitPromise: true,
            returnByValue: true,
        });
        if (exceptionDetails !== undefined) {
            throw new Error(`axe failed: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
        }

        return result.value;
    };
    await evaluate(`${AXE};undefined`);
    const found = await evaluate(`axe.run(document).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, any }) => id + ': ' + html.slice(0, 200) + ' ' + any.map(({ message }) => message).join(' '))))`);
    await client.detach();
    return found as readonly string[];
}
