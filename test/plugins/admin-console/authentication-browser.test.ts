import type { Test } from 'tap';
import { certificate } from '../../support/certificates.ts';
import { heldReceiver } from '../../support/held-receiver.ts';
import { inBrowsers, type Opened } from './browsing.ts';

inBrowsers('people enter what an exporter authenticates by, and no page gives a secret of it back', async (t, { page, check, expect }) => {
    await page.goto('/admin/exporters/new');
    await page.getByText('More, all of it optional').click();
    await page.getByRole('textbox', { name: /^URL/ }).fill('ftp://example.com');
    await page.getByText('OAuth 2', { exact: true }).click();
    await page.getByLabel('Client secret').fill('<b>hidden-word</b>');
    await page.getByLabel('Client id').fill('"><b>me</b>');
    await page.getByText('Private authorities', { exact: true }).click();
    await page.getByLabel('Authorities of the receiver').fill('</textarea><script>alert(1)</script>');
    expect('400 /admin/exporters');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Enter it again').waitFor();
    t.equal(await page.getByLabel('Client secret').inputValue(), '');
    t.equal(await page.getByLabel('Client id').inputValue(), '"><b>me</b>');
    t.equal(await page.getByLabel('Authorities of the receiver').inputValue(), '</textarea><script>alert(1)</script>');
    await page.waitForLoadState();
    t.equal(await page.getByText('hidden-word').count(), 0);
    for (const name of ['User and password', 'Client certificate', 'Proxy']) {
        await page.getByText(name, { exact: true }).click();
    }
    await check('Add Data Exporter, authentication');
    await page.getByRole('textbox', { name: /^URL/ }).fill('https://hooks.example.com/');
    expect('400 /admin/exporters');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('or leave it out').first().waitFor();
    t.equal(await page.getByLabel('Client id').inputValue(), '"><b>me</b>', 'what is no secret is kept');
    await page.getByRole('checkbox', { name: /^Leave it out/ }).check();
    await page.getByLabel('Authorities of the receiver').fill('');
    await page.getByRole('checkbox', { name: /^Start it/ }).uncheck();
    await page.getByRole('checkbox', { name: /^Dates from before/ }).check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The exporter was saved').waitFor();
    await page.waitForLoadState();
    t.equal(await page.getByText('OAuth 2').count(), 0);
});

inBrowsers('people give, keep and drop each part of what an exporter authenticates by', parts);

const PARTS = ['User and password', 'Client certificate', 'Private authorities', 'Proxy'] as const;

async function parts(t: Test, { page, check }: Opened): Promise<void> {
    const { port, handshake, answer } = await heldReceiver(t);
    handshake.open();
    answer.open();
    const { key, cert } = await certificate();
    await page.goto('/admin/exporters/new');
    await page.getByRole('textbox', { name: /^URL/ }).fill(`https://127.0.0.1:${port}/`);
    await page.getByLabel('Trust all certificates').check();
    await page.getByRole('checkbox', { name: /^Start it/ }).uncheck();
    await page.getByText('More, all of it optional').click();
    for (const name of PARTS) {
        await page.getByText(name, { exact: true }).click();
    }
    const fields = {
        'basic.username': 'ada',
        'basic.password': 'hidden-word',
        'clientCertificate.certificate': cert,
        'clientCertificate.key': key,
        ca: cert,
        'proxy.url': `http://hook:hidden-word@127.0.0.1:${port}`,
    };
    for (const [name, text] of Object.entries(fields)) {
        await page.locator(`[name="${name}"]`).fill(text);
    }
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The exporter was saved').waitFor();
    await page.getByText(PARTS.join(', ')).waitFor();
    await check('An exporter that authenticates');

    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByText('More, all of it optional').click();
    for (const name of PARTS) {
        await page.getByText(`${name}, set`).click();
    }
    await page.waitForLoadState();
    t.notMatch(await page.content(), /hidden-word|PRIVATE KEY-----|CERTIFICATE-----/);
    await check('Edit, what it authenticates by');
    for (const name of ['clientCertificate', 'ca', 'proxy']) {
        await page.locator(`[name="drop"][value="${name}"]`).check();
    }
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes were saved').waitFor();
    await page.locator('#test').getByText('Answered 204').waitFor();
    // What comes below, where the page is still coming.
    await page.waitForLoadState();
    t.equal(await page.getByText('User and password', { exact: true }).count(), 1, 'what was left alone is still there');
    t.equal(await page.getByText(/Client certificate|Private authorities|Proxy/).count(), 0);
}
