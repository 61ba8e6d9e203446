import { addressKey, IP_PATTERN } from '../addresses.ts';
import type { HttpsRecord } from './record.ts';
import type { AddedRecord } from './store.ts';

/** What the records of one address and port say about an inventory. */
export interface Endpoint {
    /** Canonical text. */
    readonly address: string;
    readonly port: number;
    /** The name for a host that is new: the first one that its records have; null when they have none. */
    readonly name: string | null;
    /** Whether one of its records is new. */
    readonly isNew: boolean;
}

/** What became of records, those of them told as refused whose address is one that the inventory has left out. */
export function withRefused(
    added: readonly AddedRecord[],
    records: readonly HttpsRecord[],
    isLeftOut: (address: string) => boolean,
): readonly AddedRecord[] {
    return added.map((one, index) => (isLeftOut(addressKey(records[index]?.ip ?? '')) ? { ...one, refused: true } : one));
}

/**
 * The endpoints of records, each once, in the order of their first record.
 *
 * @param isNew Of each record, in their order.
 */
export function endpointsOf(records: readonly HttpsRecord[], isNew: readonly boolean[]): readonly Endpoint[] {
    const endpoints = new Map<string, Endpoint>();
    const names = new Map<string, string>();
    for (const [index, { ip, port, host }] of records.entries()) {
        const address = addressKey(ip);
        const key = `${address} ${port}`;
        if (!names.has(address) && !IP_PATTERN.test(host)) {
            names.set(address, host);
        }

        endpoints.set(key, { address, port, name: null, isNew: isNew[index] === true || endpoints.get(key)?.isNew === true });
    }

    return [...endpoints.values()].map((endpoint) => ({ ...endpoint, name: names.get(endpoint.address) ?? null }));
}
