import { readFileSync } from 'node:fs';
import type { Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { fixture } from '../../support/served.ts';
import { inBrowsers, type Opened } from './browsing.ts';
import { answering, receiver } from './host.ts';

inBrowsers('people see in a browser what became of deliveries', deliveries);

async function deliveries(t: Test, { page, check, expect, see, server, scripts }: Opened): Promise<void> {
    await page.goto('/admin/deliveries');
    await page.getByText('0 deliveries').waitFor();
    await check('Deliveries, empty');

    const { exporters, publish, deliveries: kept } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t), name: '<i>alerts</i>' });
    await exporters.start(exporter.id);
    const accepted = await publish('idr_investigation_created', JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')));
    await until(async () => (await kept.show(accepted.deliveries[0] ?? '')).finishedAt !== null);
    if (!scripts) {
        await page.reload();
    }
    await page.getByText('2 deliveries').waitFor();
    await check('Deliveries');
    await page.getByLabel('Kind').fill('idr_investigation_created');
    await page.getByLabel('State').selectOption('delivered');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('1 delivery').waitFor();
    await page.getByLabel('Deliveries', { exact: true }).getByRole('rowheader').getByRole('link').click();
    await page.getByRole('heading', { name: 'Attempts' }).waitFor();
    await page.getByText('Headers', { exact: true }).click();
    await page.getByText('application/json').waitFor();
    await check('A delivery');
    await page.getByRole('button', { name: 'Resend it' }).click();
    await page.getByText('It is resent').waitFor();
    await see(page.getByRole('rowheader', { name: '2' }));
    await see(page.getByText('delivered', { exact: true }));
    await check('A delivery, sent once more');

    const refusing = await answering(t);
    refusing.status = 422;
    refusing.body = `{"error":"title","hint":"${'much-too-long-'.repeat(80)}"}\n${'line\n'.repeat(60)}`;
    const refused = await exporters.create({ url: refusing.url });
    const { test } = await exporters.start(refused.exporter.id);
    await page.goto(`/admin/deliveries/${test.deliveryId}`);
    await page.getByText('The receiver answered:').waitFor();
    await page.getByText('{"error":"title","hint":"much-too-long').waitFor();
    await check('A delivery that was refused');

    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('link', { name: 'Replays' }).click();
    await page.getByText('Nothing was resent yet').waitFor();
    await check('Replays, empty');
    await page.getByLabel('Deliveries a second').fill('0');
    expect('400 /admin/deliveries/replays');
    await page.getByRole('button', { name: 'Count them' }).click();
    await page.locator('#rate-said.fault').waitFor();
    await check('Replays, refused');
    await page.getByLabel('Deliveries a second').fill('1000');
    await page.getByLabel('what was held').check();
    await page.getByRole('button', { name: 'Count them' }).click();
    await page.getByText('0 deliveries would be resent').waitFor();
    await check('Replays, counted');
}
