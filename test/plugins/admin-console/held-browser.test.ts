import { readFileSync } from 'node:fs';
import type { Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import { fixture } from '../../support/served.ts';
import { inBrowsers, type Opened } from './browsing.ts';
import { answering } from './host.ts';

const KIND = 'idr_investigation_created';
const BODY = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')) as InvestigationCreated;

inBrowsers('people start from the overview what its receiver has stopped, and replay what was held', held);

async function held(t: Test, { page, check, see, server }: Opened): Promise<void> {
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const receiver = await answering(t);
    const { exporter } = await exporters.create({ url: receiver.url, name: '<b>alerts</b>', schedule: [86_400_000] });
    await exporters.start(exporter.id);
    receiver.status = 500;
    await publish(KIND, BODY);
    // The overview does not change by itself.
    await until(async () => (await exporters.get(exporter.id)).consecutiveFailures === 1);
    await page.goto('/admin/overview');
    await page.getByText('1 failure in a row').waitFor();
    await page.getByRole('button', { name: 'Send test: <b>alerts</b>' }).click();
    await page.locator('#test').getByText('Answered 500').waitFor();
    await check('An exporter, its test failed');

    receiver.status = 410;
    await publish(KIND, BODY);
    await until(async () => (await exporters.get(exporter.id)).state === 'stopped');
    await publish(KIND, BODY);
    await page.getByRole('link', { name: 'Overview' }).click();
    await see(page.getByText('Stopped by its receiver (The receiver answered 410 Gone)'));
    await check('Overview, with what was stopped');
    receiver.status = 204;
    await page.getByRole('button', { name: 'Start: <b>alerts</b>' }).click();
    await page.getByText('The exporter runs').waitFor();
    await page.getByText('Held while it was stopped by what its receiver did: 1').waitFor();
    await check('An exporter, with what was held');
    await page.getByRole('link', { name: 'Replay it' }).click();
    t.equal(await page.getByLabel('what was held').isChecked(), true);
    await page.getByRole('button', { name: 'Count them' }).click();
    await page.getByText('1 delivery would be resent').waitFor();
    await page.getByRole('button', { name: 'Resend them' }).click();
    await page.getByText('Resending has begun').waitFor();
    await see(page.getByRole('cell', { name: /all were handed out to be sent$/ }));
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'What needs attention' }).waitFor();
    await page.waitForLoadState();
    t.equal(await page.getByText(/Stopped by its receiver|in a row/).count(), 0, 'nothing is said of it any more');
}
