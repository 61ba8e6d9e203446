import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { inBrowsers, type Opened, onServersInBrowser } from './browsing.ts';
import { receiver } from './host.ts';

/*
 * The screens in a real browser: with scripts and without, small and large, light and dark. None of them may complain, call anybody
 * else, or keep anybody out.
 */

inBrowsers('people add, try, change and remove exporters in a browser', exporters);
onServersInBrowser('people do so on PostgreSQL and Redis', exporters);

/** Within a form; with scripts it follows what is typed. */
async function preview(page: Page, check: Opened['check'], scripts: boolean): Promise<void> {
    const show = page.getByRole('button', { name: 'Show what would be sent' });
    await page.getByText('More', { exact: true }).click();
    await show.click();
    await page.getByText('It gets this event').waitFor();
    await page.locator('#preview').getByText('X-Vendor-Signature').waitFor();
    await check('Add Data Exporter, what would be sent');
    const filter = page.getByLabel('Filter');
    await filter.fill('{"path":"title","op":"=","value":"<b>other</b>"}');
    if (!scripts) {
        await show.click();
    }
    await page.getByText('It does not get this event').waitFor();
    await filter.fill('');
    if (scripts) {
        await page.getByText('It gets this event').waitFor();
    }
}

async function exporters(t: Test, { page, check, scripts }: Opened): Promise<void> {
    await page.goto('/admin');
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByText('There is no exporter yet').waitFor();
    await check('Data Exporters, empty');
    await page.getByRole('link', { name: 'Add Data Exporter' }).click();
    await page.getByRole('textbox', { name: /^URL/ }).fill('ftp://example.com');
    await page.getByLabel('Header 1', { exact: true }).fill('X-Key');
    await page.getByLabel('Value 1', { exact: true }).fill('<i>1</i>');
    await preview(page, check, scripts);
    await page.getByRole('button', { name: 'More headers' }).click();
    await page.getByLabel('Header 3', { exact: true }).waitFor();
    await check('Add Data Exporter');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#url-said.fault').waitFor();
    await check('Add Data Exporter, refused');
    await authentication(t, page, check);
    await page.getByRole('textbox', { name: /^URL/ }).fill(await receiver(t));
    await page.getByLabel('Name', { exact: false }).first().fill('alerts');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The exporter was saved').waitFor();
    await page.getByText('First byte').waitFor();
    await check('An exporter');
    for (const [name, said] of [
        ['Pause', 'is paused'],
        ['Resume', 'What waits is sent'],
        ['Send test', 'A test event was sent'],
        ['Stop', 'is stopped'],
    ] as const) {
        await page.getByRole('button', { name, exact: true }).click();
        await page.getByText(said).first().waitFor();
    }
    await page.getByText('Rotate the secret').click();
    await page.getByRole('button', { name: 'Use this secret from now on' }).click();
    await page.getByText('The new secret signs from now on').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByText('More', { exact: true }).click();
    await page.getByText('User and password, set').click();
    t.equal(await page.getByRole('textbox', { name: 'Password' }).inputValue(), '');
    await page.getByRole('checkbox', { name: 'Drop it' }).check();
    await page.getByLabel('Trust self-signed certificates').check();
    await check('Edit');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes were saved').waitFor();
    t.equal(await page.getByText('User and password').count(), 0);
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByRole('link', { name: 'alerts' }).click();
    await page.getByText('Remove', { exact: true }).click();
    await page.getByRole('button', { name: 'Remove it for good' }).click();
    await page.getByText('The exporter was removed').waitFor();
}

/** On the page of a legacy exporter. */
async function oneWay(page: Page, check: Opened['check']): Promise<void> {
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByText('there is no way back').waitFor();
    await check('Edit, legacy');
    await page.getByLabel(/^Export type/).selectOption('investigation_legacy_and_library');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes were saved').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel(/^Export type/).selectOption('investigation_legacy');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#type-said.fault').waitFor();
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByRole('rowheader').getByRole('link').click();
}

/** Within a form that was refused, with all that is folded away open. */
async function authentication(t: Test, page: Page, check: Opened['check']): Promise<void> {
    await page.getByText('OAuth 2', { exact: true }).click();
    await page.getByLabel('Client secret').fill('<b>hidden-word</b>');
    await page.getByLabel('Client id').fill('"><b>me</b>');
    await page.getByText('Private authorities', { exact: true }).click();
    await page.getByLabel('Authorities of the receiver').fill('</textarea><script>alert(1)</script>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Enter it again').waitFor();
    t.equal(await page.getByLabel('Client secret').inputValue(), '');
    t.equal(await page.getByLabel('Client id').inputValue(), '"><b>me</b>');
    t.equal(await page.getByLabel('Authorities of the receiver').inputValue(), '</textarea><script>alert(1)</script>');
    t.equal(await page.getByText('hidden-word').count(), 0);
    for (const name of ['User and password', 'Client certificate', 'Proxy']) {
        await page.getByText(name, { exact: true }).click();
    }
    await check('Add Data Exporter, authentication');
    await page.getByRole('textbox', { name: /^URL/ }).fill('https://hooks.example.com/');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('or leave it out').first().waitFor();
    t.equal(await page.getByLabel('Client id').inputValue(), '"><b>me</b>', 'what is no secret is kept');
    await page.getByRole('checkbox', { name: /^Leave it out/ }).check();
    await page.getByLabel('Authorities of the receiver').fill('');
    await page.getByLabel('Header 1', { exact: true }).fill('');
    await page.getByLabel('Value 1', { exact: true }).fill('');
    await page.getByRole('checkbox', { name: /^Start it/ }).uncheck();
    await page.getByRole('checkbox', { name: /^Dates from before/ }).check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The exporter was saved').waitFor();
    t.equal(await page.getByText('OAuth 2').count(), 0);
    await oneWay(page, check);
    await page.getByText('Remove', { exact: true }).click();
    await page.getByRole('button', { name: 'Remove it for good' }).click();
    await page.getByText('The exporter was removed').waitFor();
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByRole('link', { name: 'Add Data Exporter' }).click();
    await page.getByText('More', { exact: true }).click();
    await page.getByText('User and password', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Password' }).fill('hidden-word');
}
