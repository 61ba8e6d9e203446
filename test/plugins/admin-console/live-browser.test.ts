import { until } from '../../../adapters/contract/assertions.ts';
import { inBrowsers } from './browsing.ts';
import { answering, investigation, receiver } from './host.ts';

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
        t.equal(await page.evaluate('document.activeElement.closest("#listed") !== null'), true, 'focus stays in the list');
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
        t.ok(await page.getByText('application/json').isVisible(), 'what was opened stays open');
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
    await see(page.getByRole('button', { name: 'Send it once more' }));
    const received = receiver.received;
    await page.getByRole('button', { name: 'Send it once more' }).click();
    await page.getByText('It is sent once more').waitFor();
    await see(page.getByRole('rowheader', { name: '3' }));
    t.ok(receiver.received > received, 'the form that came later is one of this browser');
    await check('A delivery, once more');
});

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
