import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { postgresQueue, redisQueue } from '../../../adapters/bullmq/index.ts';
import { deliveryQueueContract } from '../../../adapters/contract/index.ts';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';
import { required } from '../../support/required.ts';
import { testDatabase } from '../../support/test-database.ts';
import { tapTest } from '../contract/tap-test.ts';

t.test('on Redis', async (t) => {
    deliveryQueueContract(tapTest(t), async () => {
        const options = { url: required('REDIS_URL'), prefix: `t-${randomUUID()}`, onWarning: () => {} };
        return { queue: redisQueue(options), other: redisQueue(options), stop: async () => {} };
    });
});

t.test('on PostgreSQL', async (t) => {
    const database = await testDatabase();
    const pool = new pg.Pool({ connectionString: database.url });
    t.teardown(async () => {
        await pool.end();
        await database.drop();
    });
    deliveryQueueContract(tapTest(t), async () => {
        const stop = async (): Promise<void> => {
            await pool.query('TRUNCATE bullmq.job CASCADE');
        };
        return { queue: postgresQueue({ pool }), other: postgresQueue({ pool }), stop };
    });
});

t.test('in the embedded database', async (t) => {
    const pool = await openEmbeddedDatabase({ folder: t.testdir() });
    t.teardown(() => pool.end());
    deliveryQueueContract(tapTest(t), async () => {
        const stop = async (): Promise<void> => {
            await pool.query('TRUNCATE bullmq.job CASCADE');
        };
        return { queue: postgresQueue({ pool }), other: postgresQueue({ pool }), stop };
    });
});
