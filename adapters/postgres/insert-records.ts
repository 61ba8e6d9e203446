import { createHash } from 'node:crypto';
import type { Executor } from '../../lib/executor.ts';
import { addressKey, hostKey } from '../../lib/records/lookup-keys.ts';
import type { HttpsRecord } from '../../lib/records/record.ts';
import { recordLine } from '../../lib/records/record-line.ts';
import type { AddedRecord } from '../../lib/records/store.ts';

/** The time never goes back, whatever the clock does. What is not found is safe to insert: no other transaction stores records at the same time. */
const INSERT = `with given as materialized (
    select input.*, known.id as known_id
    from (
        select decode(hex, 'hex') as digest, ip, host, record, place
        from unnest($1::text[], $2::inet[], $3::text[], $4::text[]) with ordinality as element (hex, ip, host, record, place)
    ) input
    left join scanwire.records known on known.digest = input.digest
), added as (
    insert into scanwire.records (digest, imported_at, ip, host, record)
    select digest, greatest($5, (select max(imported_at) from scanwire.records)), ip, host, record from given where known_id is null order by place
    returning id, digest
)
select coalesce(given.known_id, added.id) as id, given.known_id is null as is_new
from given left join added using (digest)
order by given.place`;

/** Stores the records that are not there yet, in their order. To be called in a transaction that holds the turn of the table. */
export async function insertRecords(client: Executor, records: readonly HttpsRecord[], at: Date): Promise<readonly AddedRecord[]> {
    const lines = new Map<string, { readonly record: HttpsRecord; readonly line: string }>();
    const digests = records.map((record) => {
        const line = recordLine(record);
        const digest = createHash('sha256').update(line).digest('hex');
        if (!lines.has(digest)) {
            lines.set(digest, { record, line });
        }

        return digest;
    });

    const different = [...lines.values()];
    const { rows } = await client.query<{ id: string; is_new: boolean }>(INSERT, [
        [...lines.keys()],
        different.map(({ record }) => addressKey(record.ip)),
        different.map(({ record }) => hostKey(record.host)),
        different.map(({ line }) => line),
        at,
    ]);
    const added = new Map([...lines.keys()].map((digest, place) => [digest, addedRecord(rows[place])]));
    return digests.map((digest) => once(added, digest));
}

/** `bigint` comes as text. */
function addedRecord(row: { readonly id: string; readonly is_new: boolean } | undefined): AddedRecord {
    return { id: Number(row?.id), isNew: row?.is_new === true };
}

/** What is asked for again is not new. */
function once(added: Map<string, AddedRecord>, digest: string): AddedRecord {
    const answer = added.get(digest) as AddedRecord;
    added.set(digest, { ...answer, isNew: false });
    return answer;
}
