import { checkRecord, type RecordProblem, refusedRecord } from './check-record.ts';
import { duplicateKeys } from './duplicate-keys.ts';
import { keepsSchema } from './keeps-schema.ts';
import { type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
import type { HttpsRecord } from './record.ts';

/** A line that was read: the record, or what is wrong with it. */
export type ReadRecord<R = HttpsRecord> =
    | {
          readonly ok: true;
          readonly record: R;
          /** What was mended; nothing where mending was not asked for. */
          readonly mends: readonly MendKind[];
      }
    | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/** Reads one record from JSON, mended first where a profile is given. */
export function readRecord(json: string, mend?: MendProfile): ReadRecord {
    let parsed: unknown;
    try {
        parsed = JSON.parse(json);
    } catch {
        // The message of JSON.parse quotes the text.
        return refusedRecord([{ field: '', reason: 'is not valid JSON' }]);
    }

    const { value, mends } = mend === undefined ? { value: parsed, mends: [] } : mendRecord(parsed, mend);
    const repeated = duplicateKeys(json).map((field) => ({ field, reason: 'appears more than once' }));
    const checked = keepsSchema(value) ? ({ ok: true, record: value } as const) : checkRecord(value);
    if (repeated.length === 0 && checked.ok) {
        return { ok: true, record: checked.record, mends };
    }

    return refusedRecord([...repeated, ...(checked.ok ? [] : checked.problems)]);
}
