import t from 'tap';
import { apiKeyStoreContract } from '../../../adapters/contract/index.ts';
import { memoryApiKeys } from '../../../adapters/memory/index.ts';
import { tapTest } from '../contract/tap-test.ts';

apiKeyStoreContract(tapTest(t), () => {
    let now: Date | undefined;
    return {
        store: memoryApiKeys({ clock: () => now ?? new Date() }),
        setTime(time) {
            now = time;
        },
    };
});
