import { inBrowsers } from './browsing.ts';
import { receiver } from './host.ts';

inBrowsers('people are told where changes are not shown, and load the page again', async (t, { page, check, expect, server, scripts }) => {
    // As it is answered where too many people look.
    await page.route('**/deliveries/live*', (route) => route.fulfill({ status: 503, body: 'Too many' }));
    if (scripts) {
        expect('503 /admin/deliveries/live');
    }
    await page.goto('/admin/deliveries');
    await page.getByText('0 deliveries').waitFor();
    if (scripts) {
        await page.getByRole('status').getByText('Changes are not shown as they happen: load this page again').waitFor();
        await check('Deliveries, not followed');
        expect('503 /admin/deliveries/live');
    }
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t) });
    await exporters.start(exporter.id);
    await page.reload();
    await page.getByText('1 delivery').waitFor();
    if (scripts) {
        await page.getByText('Changes are not shown as they happen').waitFor();
    }
});
