import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { keyRing } from 'scanwire/keys';
import { memoryQueue } from 'scanwire/memory';
import { postgresWebhooks } from 'scanwire/postgres';
import { egressGuard, httpSender, webhooks } from 'scanwire/webhooks';
import { p95Of } from '../steady.ts';

/** Prints how long a page of deliveries and their count take by each of some filters, given by their names as JSON, and of attempts by others. Nothing is sent. */
const [url = '', looks = '', filters = '{}', ofAttempts = '{}'] = process.argv.slice(2);
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
type Lists = Pick<typeof deliveries, 'list' | 'count'> | typeof deliveries.attempts;

async function measure(lists: Lists, asked: string): Promise<void> {
    for (const [name, filter] of Object.entries(JSON.parse(asked) as Record<string, object>)) {
        figures[`page ${name}`] = await p95Of(Number(looks), () => lists.list(filter));
        figures[`count ${name}`] = await p95Of(Number(looks), () => lists.count(filter));
    }
}

await measure(deliveries, filters);
// Another checkout may list no attempts.
if ('attempts' in deliveries) {
    await measure(deliveries.attempts, ofAttempts);
}
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
