export { type CheckedRecord, checkRecord, type RecordProblem } from './check-record.ts';
export {
    type CheckedLine,
    type CheckedLines,
    type CheckRecordLinesOptions,
    checkRecordLines,
    type RecordTotals,
} from './check-record-lines.ts';
export { type HttpsRecord, RECORD_SCHEMA_VERSION, recordSchema } from './record.ts';
export { type JsonSchema, recordJsonSchema } from './record-json-schema.ts';
