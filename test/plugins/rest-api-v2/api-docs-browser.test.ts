import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { watchedPage } from '../../support/browser.ts';
import { inBrowser } from '../admin-console/browsing.ts';
import { served } from './served.ts';

t.setTimeout(600_000);

inBrowser('the page of the API asks for a key, forgets it, and reads the API with it', async (t, browser) => {
    const { server, headers } = await served({ store: memoryInventory(), openapi: { page: '/api-docs' } });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const origin = server.info.uri;
    // What the policy refuses the browser complains of, and every request to somebody else is written down.
    const { page, complaints, expect, unrefused, close } = await watchedPage(browser, origin, { baseURL: origin });
    t.teardown(close);
    // It asks without a key as well, perhaps after it has shown the field for one.
    const asked = () => page.waitForResponse((response) => new URL(response.url()).pathname === '/rest_api/v2/openapi.json');
    expect('403 /rest_api/v2/openapi.json');
    const [loaded] = await Promise.all([page.goto('/api-docs'), asked()]);
    t.match(loaded?.headers()['content-security-policy'], /default-src 'none'/);
    const field = page.getByLabel('API key');
    await field.waitFor();
    t.equal(await page.locator('#api').textContent(), '', 'there is nothing to see without a key');

    expect('403 /rest_api/v2/openapi.json');
    await field.fill('wrong');
    await page.getByRole('button', { name: 'Show the API' }).click();
    await page.getByText('This key may not read the API').waitFor();

    await field.fill(headers.token ?? '');
    await page.getByRole('button', { name: 'Show the API' }).click();
    const operation = page.locator('.opblock', { has: page.locator('[data-path="/rest_api/v2/workspaces"]') });
    await operation.locator('.opblock-summary-control').click();
    await operation.getByRole('button', { name: 'Try it out' }).click();
    const answered = page.waitForResponse((response) => new URL(response.url()).pathname === '/rest_api/v2/workspaces');
    await operation.getByRole('button', { name: 'Execute' }).click();
    const answer = await answered;
    t.equal(answer.status(), 200);
    t.match(await answer.json(), [{ name: 'default' }]);
    await operation.locator('.live-responses-table .response-col_status', { hasText: '200' }).waitFor();

    const kept = await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie]');
    t.same(kept, [0, 0, '']);
    t.same(await page.context().cookies(), []);
    t.equal(await field.inputValue(), '');
    expect('403 /rest_api/v2/openapi.json');
    await Promise.all([page.reload(), asked()]);
    await field.waitFor();
    t.equal(await page.locator('#api').textContent(), '', 'and none is there when it is loaded again');
    t.same([...complaints, ...unrefused], []);
});
