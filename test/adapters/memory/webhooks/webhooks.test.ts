import t from 'tap';
import { webhookStoresContract } from '../../../../adapters/contract/index.ts';
import { tapTest } from '../../contract/tap-test.ts';
import { memoryStores } from '../../contract/webhooks/mutants.ts';

webhookStoresContract(tapTest(t), memoryStores);
