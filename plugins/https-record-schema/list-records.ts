import type { RecordQuery, RecordStore, StoredRecord } from '../../lib/records/index.ts';
import { takeTurns } from '../../lib/take-turns.ts';

/** Records that are held at once: each may be as large as a line may be. */
const AT_ONCE = 16;

/** All that the query finds, however much it is, in batches that are small enough to be held. */
export async function* listRecords(
    store: RecordStore,
    { limit, ...query }: RecordQuery,
): AsyncGenerator<readonly StoredRecord[], void, undefined> {
    const turn = takeTurns();
    let { after } = query;
    for (let left = limit; left > 0; ) {
        const asked = Math.min(left, AT_ONCE);
        const batch = await store.list({ ...query, after, limit: asked });
        if (batch.length > 0) {
            yield batch;
        }

        left = batch.length < asked ? 0 : left - asked;
        after = batch.at(-1)?.id;
        await turn();
    }
}
