import t from 'tap';
import { memoryQueue } from '../../../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { recordingProcess } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

const pool = await migratedPool(t, { max: 8 });
const KIND = 'idr_investigation_created';
const LARGE = 3_000_000;
/** A few more than a statement has room for. */
const EXPORTERS = 67;

t.test('refuses an event whose messages are too long together, and takes those that are published beside it', async (t) => {
    const formats = [
        {
            name: 'large',
            contentType: 'text/plain',
            make: ({ body }: { readonly body: object }) => ({
                body: 'title' in body && body.title === 'large' ? 'x'.repeat(LARGE) : 'small',
            }),
        },
    ];
    const stores = postgresWebhooks({ pool });
    const self = recordingProcess(t, stores, { formats, queue: memoryQueue() });
    await self.start();
    for (let count = 0; count < EXPORTERS; count += 1) {
        const { exporter } = await self.exporters.create({ url: 'https://receiver.example/', format: 'large' });
        await stores.exporters.update(exporter.id, { state: 'running' });
    }
    const publish = (title: string) => self.publish(KIND, { ...INVESTIGATION, title });
    await publish('first');
    const [large, ...small] = await Promise.allSettled([publish('large'), ...Array.from({ length: 20 }, () => publish('small'))]);
    t.match(large, {
        status: 'rejected',
        reason: {
            code: 'INVALID_INPUT',
            field: 'body',
            message: /^Messages .* at most 200000000 characters in all; these have 201\d{6}$/,
        },
    });
    t.strictSame(new Set(small.map(({ status }) => status)), new Set(['fulfilled']));
    const { rows } = await pool.query('select count(*)::integer from scanwire.delivery_messages');
    t.strictSame(rows, [{ count: 21 * EXPORTERS }]);
});
