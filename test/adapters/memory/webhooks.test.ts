import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/webhooks.ts';
import { memoryWebhooks } from '../../../adapters/memory/webhooks.ts';
import { tapTest } from '../contract/tap-test.ts';

webhookStoresContract(tapTest(t), async () => ({ ...memoryWebhooks(), stop: async () => {} }));
