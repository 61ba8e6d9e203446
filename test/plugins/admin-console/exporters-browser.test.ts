import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { inBrowsers, type Opened } from './browsing.ts';
import { receiver } from './host.ts';

/*
 * The screens in a real browser: with scripts and without, small and large, light and dark. None of them may complain, call anybody
 * else, or keep anybody out.
 */

inBrowsers('people add, try, change and remove exporters in a browser', exporters);

/** Within a form; with scripts it follows what is typed. */
async function preview(page: Page, check: Opened['check'], scripts: boolean): Promise<void> {
    const show = page.getByRole('button', { name: 'Show what would be sent' });
    await page.getByText('More, all of it optional').click();
    await show.click();
    await page.getByText('It gets this event').waitFor();
    await page.locator('#preview[aria-live=polite]').getByText('X-Vendor-Signature').waitFor();
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

async function exporters(t: Test, { page, check, expect, scripts }: Opened): Promise<void> {
    await page.goto('/admin');
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByText('There is no exporter yet').waitFor();
    await check('Data Exporters, empty');
    await page.getByRole('link', { name: 'Add Data Exporter' }).click();
    await page.getByRole('textbox', { name: /^URL/ }).fill('ftp://example.com');
    await page.getByLabel('Header 1', { exact: true }).fill('X-Key');
    await page.getByLabel('Value 1', { exact: true }).fill('<i>1</i>');
    await preview(page, check, scripts);
    if (scripts) {
        await page.getByRole('button', { name: 'Copy' }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
    }
    await page.getByRole('button', { name: 'More headers' }).click();
    await page.getByLabel('Header 3', { exact: true }).waitFor();
    await check('Add Data Exporter');
    expect('400 /admin/exporters');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#url-said.fault').waitFor();
    await check('Add Data Exporter, refused');
    await page.getByLabel('Header 1', { exact: true }).fill('');
    await page.getByLabel('Value 1', { exact: true }).fill('');
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
    await rotation(page, check, expect);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByText('More, all of it optional').click();
    await page.getByLabel('Trust self-signed certificates').check();
    await page.getByLabel('Events with the same order key').check();
    await page.locator('[name=rate]').fill('50');
    await check('Edit');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes were saved').waitFor();
    await page.getByText('self-signed certificates too').waitFor();
    await page.getByRole('link', { name: 'Data Exporters' }).click();
    await page.getByRole('link', { name: 'alerts' }).click();
    await page.getByText('Remove', { exact: true }).click();
    await page.getByRole('button', { name: 'Remove it for good' }).click();
    await page.getByText('The exporter was removed').waitFor();
}

/** On the page of an exporter. */
async function rotation(page: Page, check: Opened['check'], expect: Opened['expect']): Promise<void> {
    await page.getByText('Rotate the secret').click();
    await page.getByLabel('Hours for which').fill('721');
    expect('400 /admin/exporters/{id}/secret');
    await page.getByRole('button', { name: 'Use this secret from now on' }).click();
    await page.locator('#overlap-said.fault').waitFor();
    await check('An exporter, its secret refused');
    await page.getByLabel('Hours for which').fill('2');
    await page.getByRole('button', { name: 'Use this secret from now on' }).click();
    await page.getByText('The new secret signs from now on').waitFor();
}
