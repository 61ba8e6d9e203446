import type { Locator } from 'playwright-core';
import { heldReceiver } from '../../support/held-receiver.ts';
import { inBrowsers } from './browsing.ts';

inBrowsers('people see a test go on step by step', async (t, { page, check, server, scripts }) => {
    const { port, handshake, answer } = await heldReceiver(t);
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: `https://127.0.0.1:${port}/`, trust: 'all' });
    const step = (name: string, said: RegExp): Locator =>
        page.locator('#test dt', { hasText: name }).locator('xpath=following-sibling::dd[1]').filter({ hasText: said });
    await page.goto(`/admin/exporters/${exporter.id}`);
    if (scripts) {
        await page.getByRole('button', { name: 'Send test' }).click();
        await step('Connection', / ms$/).waitFor();
        await step('TLS', /^not yet$/).waitFor();
        handshake.open();
        await step('TLS', / ms$/).waitFor();
        await step('First byte', /^not yet$/).waitFor();
        await check('An exporter, its test under way');
        answer.open();
    } else {
        handshake.open();
        answer.open();
        await page.getByRole('button', { name: 'Send test' }).click();
    }
    await step('First byte', / ms$/).waitFor();
    await step('In all', / ms$/).waitFor();
    await page.locator('#test').getByText('Answered 204').waitFor();
});
