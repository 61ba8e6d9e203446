import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/index.ts';
import { migrate } from '../../../adapters/postgres/index.ts';
import { tapTest } from '../contract/tap-test.ts';
import { databases } from './databases.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

for (const { name, open } of databases) {
    t.test(`keeps the laws of webhook stores on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        await migrate(pool);
        webhookStoresContract(tapTest(t), () => emptyWebhookStores(pool));
    });
}
