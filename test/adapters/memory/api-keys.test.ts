import t from 'tap';
import { apiKeyStoreContract } from '../../../adapters/contract/api-keys.ts';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';

apiKeyStoreContract(
    (name, law) => t.test(name, law),
    () => ({ store: memoryApiKeys(), async stop() {} }),
);
