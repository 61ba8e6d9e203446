import { readFileSync } from 'node:fs';
import { until } from '../../../adapters/contract/assertions.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import { fixture } from '../../support/served.ts';
import { inBrowsers } from './browsing.ts';
import { answering } from './host.ts';

const KIND = 'idr_investigation_created';
const BODY = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')) as InvestigationCreated;

inBrowsers('people find out why deliveries fail, and replay them once that is mended', async (t, { page, check, see, server }) => {
    const { exporters, publish, deliveries: kept } = server.plugins['webhook-exporter'];
    const receiver = await answering(t);
    receiver.status = 500;
    // Nothing is tried again by itself meanwhile.
    const { exporter } = await exporters.create({ url: receiver.url, name: 'alerts', schedule: [86_400_000] });
    await exporters.start(exporter.id);
    for (let times = 0; times < 8; times += 1) {
        await publish(KIND, BODY);
    }
    await until(async () => (await kept.list({ kind: KIND, outcome: 'server_error' })).length === 8);

    await page.goto('/admin');
    await page.getByText('in a row').waitFor();
    await page.getByRole('link', { name: 'alerts' }).click();
    await page.getByRole('button', { name: 'Deliveries' }).click();
    await page.getByRole('rowheader').getByRole('link').first().click();
    await page.getByText('Answered 500').first().waitFor();
    await page.getByText('Repair the receiver').waitFor();
    await check('A delivery that fails');
    receiver.status = 204;
    await page.getByRole('definition').getByRole('link', { name: 'alerts' }).click();
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.locator('#test').getByText('Answered 204').waitFor();

    await page.getByRole('button', { name: 'Replays' }).click();
    await counted('1');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Resending was cancelled').waitFor();
    await check('Replays, cancelled');
    await counted('1000');
    await see(page.getByRole('cell', { name: /all were handed out to be sent$/ }));
    await check('Replays, done');
    // What was handed out may be under way.
    await until(async () => (await kept.list({ kind: KIND, state: 'delivered' })).length === 8);
    const received = receiver.received;

    await exporters.pause(exporter.id);
    const { deliveries } = await publish(KIND, BODY);
    await page.goto(`/admin/deliveries/${deliveries[0]}`);
    await page.getByRole('button', { name: 'Discard it' }).click();
    await page.getByText('It was discarded').waitFor();
    await check('A delivery, discarded');
    t.equal(receiver.received, received, 'it is not sent');

    /** Counted and begun. @param rate Deliveries a second. */
    async function counted(rate: string): Promise<void> {
        await page.getByLabel('Deliveries a second').fill(rate);
        await page.getByRole('button', { name: 'Count them' }).click();
        await page.getByText('would be resent').waitFor();
        await page.getByRole('button', { name: 'Resend them' }).click();
        await page.getByText('Resending has begun').waitFor();
    }
});
