import { createHash } from 'node:crypto';
import Joi from 'joi';
import { addressKey, hostKey } from '../../lib/addresses.ts';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { endpointsOf, withRefused } from '../../lib/records/endpoints.ts';
import { type HttpsRecord, stringifyRecord } from '../../lib/records/record.ts';
import type { AddedRecord, RecordFilter, RecordStore, StoredRecord } from '../../lib/records/store.ts';
import { checked, clockSchema, objectWith } from '../../lib/schema-validation.ts';
import { readingFrom, sourceOf } from '../../lib/store-source.ts';
import type { InventoryImport } from './inventory/import-hosts.ts';

/** How a store of records in memory is made. */
export interface MemoryRecordsOptions {
    readonly clock?: Clock;
    /** What records enrich; without it the store enriches nothing. */
    readonly inventory?: Pick<InventoryImport, 'addEndpoints'>;
}

const optionsSchema: Joi.ObjectSchema<MemoryRecordsOptions & Required<Pick<MemoryRecordsOptions, 'clock'>>> = Joi.object({
    clock: clockSchema,
    inventory: objectWith<Pick<InventoryImport, 'addEndpoints'>>('addEndpoints'),
});

interface Row extends StoredRecord {
    /** What lookups compare. */
    readonly ip: string;
    readonly host: string;
}

/** HTTPS scan records in memory, for tests and trials: they are gone with the process. */
export function memoryRecords(options: MemoryRecordsOptions = {}): RecordStore {
    const { clock, inventory } = checked(optionsSchema, options, { subject: 'memoryRecords options', code: 'MISCONFIGURED' });
    // Ids count from 1 without a gap, so a row is at its id less one.
    const rows: Row[] = [];
    const ids = new Map<string, number>();

    function addRecord({ digest, ...row }: ReturnType<typeof newRecord>, importedAt: Date): AddedRecord {
        const known = ids.get(digest);
        if (known !== undefined) {
            return { id: known, isNew: false };
        }

        const id = rows.length + 1;
        rows.push({ ...row, id, importedAt });
        ids.set(digest, id);
        return { id, isNew: true };
    }

    const store: RecordStore = {
        enriches: inventory !== undefined,

        async add(records, { enrich } = {}) {
            if (enrich !== undefined && inventory === undefined) {
                throw new ScanwireError('MISCONFIGURED', 'This store of records has no inventory to enrich');
            }

            const newRecords = records.map(newRecord);
            if (enrich !== undefined && records.length > 0) {
                // Fails where the boundary of the workspace is none, before anything is stored.
                inventory?.addEndpoints(enrich.workspace, []);
            }

            // From here on nothing waits and nothing fails: all or nothing.
            const at = notBefore(rows.at(-1)?.importedAt, clock());
            const added = newRecords.map((record) => addRecord(record, at));
            if (enrich !== undefined && records.length > 0) {
                const isNew = added.map((one) => one.isNew);
                const leftOut = inventory?.addEndpoints(enrich.workspace, endpointsOf(records, isNew));
                return withRefused(added, records, (address) => leftOut?.has(address) === true);
            }

            return added;
        },

        async get(id) {
            const row = rows[id - 1];
            return row === undefined ? null : shown(row);
        },

        async list(query) {
            const found: StoredRecord[] = [];
            const matches = matching(query);
            for (let index = Math.max(0, query.after ?? 0); index < rows.length && found.length < query.limit; index += 1) {
                const row = rows[index];
                if (row !== undefined && matches(row)) {
                    found.push(shown(row));
                }
            }

            return found;
        },

        async count(filter) {
            return rows.filter(matching(filter)).length;
        },
    };
    return inventory === undefined ? store : readingFrom(sourceOf(inventory), store);
}

function notBefore(last: Date | undefined, now: Date): Date {
    return last !== undefined && last > now ? last : now;
}

function newRecord(record: HttpsRecord) {
    const line = stringifyRecord(record);
    const digest = createHash('sha256').update(line).digest('base64');
    return { record: JSON.parse(line) as HttpsRecord, digest, ip: addressKey(record.ip), host: hostKey(record.host) };
}

function matching({ ip, host, importedFrom, importedBefore }: RecordFilter): (row: Row) => boolean {
    const address = ip === undefined ? undefined : addressKey(ip);
    const name = host === undefined ? undefined : hostKey(host);
    return (row) =>
        (address === undefined || row.ip === address) &&
        (name === undefined || row.host === name) &&
        (importedFrom === undefined || row.importedAt >= importedFrom) &&
        (importedBefore === undefined || row.importedAt < importedBefore);
}

function shown({ id, importedAt, record }: Row): StoredRecord {
    return { id, importedAt, record };
}
