import { timeSlice } from '../clock.ts';
import type { HttpsRecord } from './record.ts';

/** A record at rest. Its time is beside it: the record itself has no field for one. */
export interface StoredRecord {
    /** From 1, in the order of storing; at most `Number.MAX_SAFE_INTEGER`. */
    readonly id: number;
    /** When it was stored first, to the millisecond. Ascends with the id: where the clock went back, it is the time of the record before. */
    readonly importedAt: Date;
    /** As it went in. */
    readonly record: HttpsRecord;
}

/** What became of one record that was to be stored. */
export interface AddedRecord {
    readonly id: number;
    /** False when the same record was there before, or earlier among those added with it. */
    readonly isNew: boolean;
    /** The inventory that it was to enrich took nothing of it: its address is outside of the boundary of the workspace. */
    readonly refused?: true;
}

/** Puts what records show into an inventory. */
export interface Enrichment {
    /** Name of the workspace, made when missing. */
    readonly workspace: string;
}

/** What is done besides storing. */
export interface AddRecordsOptions {
    /** None leaves the inventory alone. */
    readonly enrich?: Enrichment | undefined;
}

/** Which records; what is absent restricts nothing. */
export interface RecordFilter {
    /** However it is written. */
    readonly ip?: string | undefined;
    /** Name or address of the endpoint; case does not count. */
    readonly host?: string | undefined;
    readonly importedFrom?: Date | undefined;
    /** Exclusive. */
    readonly importedBefore?: Date | undefined;
}

/** A part of these records. */
export interface RecordQuery extends RecordFilter {
    /** Only records of a higher id. */
    readonly after?: number | undefined;
    /** Records listed at most, each of which may be as large as a line may be. */
    readonly limit: number;
}

/** Where `https-record-schema` keeps records. Methods reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface RecordStore {
    /** Whether `add` can enrich an inventory. */
    readonly enriches: boolean;

    /**
     * Stores records that keep the schema: all, or none when anything fails. The same record again, whatever the order of its
     * keys, adds nothing. The result is in the order of `records`.
     *
     * Enriching makes, in the same transaction, a host for the `ip` and an open service `https` for the `port` of every record,
     * where the workspace has none. A new record also marks a host that was there as updated, and a service that was there as open
     * and `https`; what else is known of them stays. So a batch that is sent again changes nothing. Where the workspace has
     * `limit_to_network`, records of addresses outside of its boundary are stored and leave the inventory alone, as `refused`.
     *
     * @throws ScanwireError `MISCONFIGURED` for an enrichment of a store that does not enrich; `CONFLICT` where the boundary of the workspace
     *     cannot be understood.
     */
    add(records: readonly HttpsRecord[], options?: AddRecordsOptions): Promise<readonly AddedRecord[]>;

    /** Null for an id that no record has. */
    get(id: number): Promise<StoredRecord | null>;

    /** In ascending id. A record that is stored later has a higher id than all that could be listed before. */
    list(query: RecordQuery): Promise<readonly StoredRecord[]>;

    /** How many there are. Without it nobody is told. */
    count?(filter: RecordFilter): Promise<number>;
}

/** How many records are held: each may be as large as a line may be. */
const BATCH = 16;

/** All that the query finds, however much it is, in batches that are small enough to be held. */
export async function* listRecords(
    store: RecordStore,
    { limit, ...query }: RecordQuery,
): AsyncGenerator<readonly StoredRecord[], void, undefined> {
    const yieldIfDue = timeSlice();
    let { after } = query;
    for (let left = limit; left > 0; ) {
        const asked = Math.min(left, BATCH);
        const batch = await store.list({ ...query, after, limit: asked });
        if (batch.length > 0) {
            yield batch;
        }

        left = batch.length < asked ? 0 : left - asked;
        after = batch.at(-1)?.id;
        await yieldIfDue();
    }
}
