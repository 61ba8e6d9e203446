import { randomBytes } from 'node:crypto';
import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { webhooksOver } from '../../cli/deployment.ts';
import { keyRing as newKeyRing } from '../../lib/keys/index.ts';
import type { DeploymentSettings } from '../../lib/webhooks/deployment-settings.ts';

const keyRing = newKeyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

t.test('names a setting that a host of a version before has stored and this one refuses, and where it comes from', async (t) => {
    const stores = memoryWebhooks();
    const host = await webhooksOver({ stores, keyRing, queue: memoryQueue(), receivers: {} }, null, {});
    await host.start();
    await host.close();
    const { settings } = await stores.settings.read();
    const worker = (kept: Partial<DeploymentSettings>) =>
        webhooksOver(
            { stores, keyRing, queue: memoryQueue(), receivers: {} },
            { ...(settings as DeploymentSettings), ...kept },
            { role: 'worker' },
        );

    await (await worker({})).close();
    for (const [name, value, rule] of [
        ['stopAfter', 5, /milliseconds/],
        ['vendor', 'A B', /letters and digits/],
        ['attemptTimeout', 20, /milliseconds/],
        ['egress', { allow: ['10.1.2.3/8'] }, /first address/],
    ] as const) {
        const refused = worker({ [name]: value });
        await t.rejects(
            refused,
            { code: 'MISCONFIGURED', message: /^Cannot use the settings that a host has stored: .*Start the host with others first$/ },
            name,
        );
        await t.rejects(refused, { message: rule }, name);
        await t.rejects(refused, { message: name }, name);
    }
});
