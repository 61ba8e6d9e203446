import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { keyRing } from 'scanwire/keys';
import { memoryQueue } from 'scanwire/memory';
import { postgresWebhooks } from 'scanwire/postgres';
import { egressGuard, httpSender, webhooks } from 'scanwire/webhooks';
import { p95Of } from '../steady.ts';

/** Prints how long a page of deliveries and their count take by each of some filters, given by their names as JSON. Nothing is sent. */
const [url = '', looks = '', filters = '{}'] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 1 });
const guard = egressGuard({ allow: [] });
const { deliveries } = webhooks({
    ...postgresWebhooks({ pool }),
    queue: memoryQueue(),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    guard,
    sender: httpSender({ guard }),
});
const figures: Record<string, number> = {};
for (const [name, filter] of Object.entries(JSON.parse(filters) as Record<string, object>)) {
    figures[`page ${name}`] = await p95Of(Number(looks), () => deliveries.list(filter));
    figures[`count ${name}`] = await p95Of(Number(looks), () => deliveries.count(filter));
}
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
