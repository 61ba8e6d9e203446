export { type EgressGuard, egressGuard } from '../egress/egress-guard.ts';
export { type CaptureCode, CaptureFailure } from './capture/capture-failure.ts';
export type { CaptureLimits, CaptureOptions } from './capture/capture-options.ts';
export { type Capture, captureRecord, recordCapture } from './capture/capture-record.ts';
export { type CaptureManyOptions, type CaptureResult, captureRecords } from './capture/capture-records.ts';
export { type CaptureTarget, parseTarget } from './capture/capture-target.ts';
export { MAX_ANSWER_BYTES } from './capture/max-answer-bytes.ts';
export { readTargetLines, type TargetLine } from './capture/read-target-lines.ts';
export { type CheckedRecord, checkRecord, type RecordProblem } from './check-record.ts';
export { type DecodedRecord, decodeRecord } from './decode-record.ts';
export { type Endpoint, endpointsOf } from './endpoints.ts';
export { type ImportedLine, type ImportRecordsOptions, importRecords } from './import-records.ts';
export { addressKey, hostKey } from './lookup-keys.ts';
export { MEND_PROFILES, type MendCounts, type MendedRecord, type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
export { type ReadDecodedRecordsOptions, readDecodedRecords } from './read-decoded-records.ts';
export type { ReadRecordsOptions, RecordLine, RecordLines } from './read-lines.ts';
export type { ReadRecord } from './read-record.ts';
export { readRecords } from './read-records.ts';
export { type HttpsRecord, RECORD_SCHEMA_VERSION, recordSchema } from './record.ts';
export { type JsonSchema, recordJsonSchema } from './record-json-schema.ts';
export { recordLine } from './record-line.ts';
export type { RecordTotals } from './record-totals.ts';
export { bodyText } from './response/body-text.ts';
export { parseResponse } from './response/parse-response.ts';
export {
    type HttpResponse,
    type OtherResponse,
    type ParsedResponse,
    RESPONSE_PROBLEMS,
    type ResponseHeader,
    type ResponseLimits,
    type ResponseProblem,
} from './response/parsed-response.ts';
export type { AddedRecord, AddRecordsOptions, Enrichment, RecordQuery, RecordStore, StoredRecord } from './store.ts';
export { type WriteRecordsOptions, writeRecords } from './write-records.ts';
