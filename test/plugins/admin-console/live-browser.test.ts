import { until } from '../../../adapters/contract/assertions.ts';
import { inBrowsers } from './browsing.ts';
import { receiver } from './host.ts';

inBrowsers('people see deliveries as they happen, and over time', async (t, { page, check, server, scripts }) => {
    await page.goto('/admin/deliveries');
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t), name: 'alerts' });
    const seen = page.getByRole('status').getByText('Changes are shown as they happen');
    if (scripts) {
        await seen.waitFor();
        await exporters.start(exporter.id);
        await page.getByText('1 delivery').waitFor();
        const link = page.getByRole('rowheader').getByRole('link');
        await link.focus();
        await exporters.test(exporter.id);
        await page.getByText('2 deliveries').waitFor();
        // Focus stays in the list.
        await until(async () => (await page.evaluate('document.activeElement.closest("#listed") !== null')) === true);
        await page.getByRole('button', { name: 'Pause' }).click();
        await page.getByText('Changes are not shown until you go on').waitFor();
        await exporters.test(exporter.id);
        await check('Deliveries, held');
        await page.getByRole('button', { name: 'Go on' }).click();
        await page.getByText('3 deliveries').waitFor();
        await link.first().click();
        await page.getByRole('heading', { name: 'Attempts' }).waitFor();
        await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
        await seen.waitFor();
    } else {
        t.equal(await seen.count(), 0);
        await exporters.start(exporter.id);
        await page.reload();
        await page.getByText('1 delivery').waitFor();
    }

    await page.getByRole('link', { name: 'Deliveries over time' }).click();
    await page
        .getByRole('img', { name: /^Deliveries: \d in all, the most in a bar \d$/ })
        .first()
        .waitFor();
    await check('Deliveries over time');
    await page.getByText('The numbers').first().click();
    await page.getByRole('columnheader', { name: 'Last attempt failed' }).first().waitFor();
    await check('Deliveries over time, the numbers');
    await page.getByLabel('Exporter').selectOption('alerts');
    await page.getByRole('button', { name: 'Show' }).click();
    await page
        .getByRole('img', { name: /From acceptance to delivery/ })
        .first()
        .waitFor();
});
