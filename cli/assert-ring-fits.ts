import { type KeyRing, sealingKeyId } from '../lib/keys/key-ring.ts';
import { ScanwireError } from '../lib/scanwire-error.ts';
import type { Stores } from './stores.ts';

/**
 * Refuses a key ring beside a database that another one sealed: what it sealed there the other processes could not open, and
 * their next start would be refused.
 *
 * @throws ScanwireError `MISCONFIGURED` naming the key that is missing in the ring.
 */
export async function assertRingFits({ apiKeys, webhooks }: Pick<Stores, 'apiKeys' | 'webhooks'>, { ids }: KeyRing): Promise<void> {
    const [keys, exporters] = await Promise.all([apiKeys.list(), webhooks.exporters.list()]);
    const sealed = [...keys.map((key) => key.sealed), ...exporters.flatMap((exporter) => [exporter.sealedSecret, exporter.sealedHeaders])];
    for (const text of sealed) {
        const id = text === null ? null : sealingKeyId(text);
        if (id !== null && !ids.has(id)) {
            throw new ScanwireError(
                'MISCONFIGURED',
                `The database was sealed with key ${id}, which is not in the key ring: name the folder that has it with --data, or set SCANWIRE_KEY_RING`,
                { field: 'data' },
            );
        }
    }
}
