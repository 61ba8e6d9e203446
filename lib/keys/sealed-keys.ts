import { ScanwireError } from '../errors.ts';
import { type KeyRing, type Resealed, reseal, type SealedText } from './key-ring.ts';
import type { ApiKeyStore, StoredApiKey } from './store.ts';

/** What a key is sealed for. */
export function sealingContext(id: string): string {
    return `api-key:${id}`;
}

/** API keys at rest for the check of a key ring: one of each sealing key where the store can tell, else all that are sealed. */
export async function sealedKeys(store: ApiKeyStore): Promise<readonly SealedText[]> {
    return textsOf(await (store.sealedSamples?.() ?? store.list()));
}

function textsOf(keys: readonly Pick<StoredApiKey, 'id' | 'sealed'>[]): readonly SealedText[] {
    return keys.flatMap(({ id, sealed }) => (sealed === null ? [] : [{ sealed, context: sealingContext(id) }]));
}

/** Keys in one batch. */
const MAX_RESEALED = 500;

/** A batch of them, see `ApiKeys.sealAnew`. Without a key ring nothing is sealed. */
export async function resealKeys(store: ApiKeyStore, ring: KeyRing | undefined, after: string | null): Promise<Resealed> {
    if (ring === undefined) {
        return { sealed: 0, unopened: [], next: null };
    }
    if (store.sealedByOthers === undefined || store.reseal === undefined) {
        throw new ScanwireError('MISCONFIGURED', 'The store of the API keys cannot seal again: it has no sealedByOthers and reseal', {
            field: 'store',
        });
    }

    const keys = await store.sealedByOthers(ring.current, after, MAX_RESEALED);
    const { resealed, unopened } = reseal(ring, textsOf(keys));
    const opened = keys.filter(({ sealed }) => sealed !== null && resealed.has(sealed));
    await store.reseal(opened.map(({ id, sealed }) => ({ id, sealed: resealed.get(sealed as string) as string })));
    return { sealed: opened.length, unopened, next: keys.length < MAX_RESEALED ? null : (keys.at(-1)?.id ?? null) };
}
