import { until } from '../../../adapters/contract/assertions.ts';
import { inBrowsers } from './browsing.ts';
import { answering, investigation } from './host.ts';

inBrowsers('people see on the page of a delivery what becomes of it', async (t, { page, check, see, server, scripts }) => {
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const receiver = await answering(t);
    const { exporter } = await exporters.create({ url: receiver.url, schedule: [86_400_000] });
    await exporters.start(exporter.id);
    await exporters.pause(exporter.id);
    const [id = ''] = (await publish('idr_investigation_created', investigation)).deliveries;
    await page.goto(`/admin/deliveries/${id}`);
    await page.getByText('There was no attempt yet').waitFor();
    if (scripts) {
        await page.getByRole('status').getByText('Changes are shown as they happen').waitFor();
        await page.getByText('Headers', { exact: true }).click();
    }
    receiver.status = 500;
    await exporters.resume(exporter.id);
    await see(page.getByText('Answered 500').first());
    if (scripts) {
        // What was opened stays open.
        await page.getByText('application/json').waitFor();
        await check('A delivery, as it fails');
        await page.getByRole('button', { name: 'Pause' }).click();
        await page.getByText('Changes are not shown until you go on').waitFor();
    }
    receiver.status = 204;
    await deliveries.replay(id);
    await until(async () => (await deliveries.show(id)).lastCode === 'delivered');
    if (scripts) {
        await page.getByRole('button', { name: 'Go on' }).click();
    }
    await see(page.getByRole('button', { name: 'Resend it' }));
    const received = receiver.received;
    await page.getByRole('button', { name: 'Resend it' }).click();
    await page.getByText('It is resent').waitFor();
    await see(page.getByRole('rowheader', { name: '3' }));
    // The form that came later is one of this browser. An attempt may be shown before it arrives.
    await until(() => receiver.received > received);
    await check('A delivery, once more');
});
