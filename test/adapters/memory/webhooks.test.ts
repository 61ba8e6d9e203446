import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/index.ts';
import { memoryWebhooks } from '../../../adapters/memory/index.ts';
import { tapTest } from '../contract/tap-test.ts';

webhookStoresContract(tapTest(t), memoryWebhooks);
