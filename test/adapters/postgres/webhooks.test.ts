import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/webhooks.ts';
import { tapTest } from '../contract/tap-test.ts';
import { createDatabase, emptyStores } from './webhook-database.ts';

const database = await createDatabase();
t.teardown(() => database.drop());

webhookStoresContract(tapTest(t), () => emptyStores(database.pool));
