export { addressKey, hostKey } from '../addresses.ts';
export { type EgressGuard, egressGuard } from '../egress/guard.ts';
export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export type { Rereadable } from '../gunzip.ts';
export {
    type CaptureLimits,
    type CaptureManyOptions,
    type CaptureOptions,
    type CaptureResult,
    type Capturer,
    captureRecord,
    captureRecords,
    capturer,
    MAX_RESPONSE_BYTES,
} from './capture/capture.ts';
export { type CaptureCode, CaptureFailure } from './capture/failure.ts';
export { type CaptureTarget, parseTarget, readTargetLines, type TargetLine } from './capture/target.ts';
export { type CheckedRecord, checkRecord, type RecordProblem } from './check-record.ts';
export { type DecodedRecord, decodeRecord, type ReadDecodedRecordsOptions, readDecodedRecords } from './decode-records.ts';
export { type Endpoint, endpointsOf } from './endpoints.ts';
export { type ImportedLine, type ImportRecordsOptions, importRecords } from './import-records.ts';
export { MEND_PROFILES, type MendCounts, type MendedRecord, type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
export type { ReadRecord } from './parse-line.ts';
export {
    type ReadRecordsOptions,
    type RecordLine,
    type RecordLines,
    type RecordTotals,
    readRecords,
    recordSource,
} from './read-records.ts';
export { type HttpsRecord, stringifyRecord } from './record.ts';
export { type JsonSchema, RECORD_SCHEMA_VERSION, recordJsonSchema, recordSchema } from './record-schema.ts';
export { bodyText } from './response/charset.ts';
export {
    type HttpResponse,
    type OtherResponse,
    type ParsedResponse,
    parseResponse,
    RESPONSE_PROBLEMS,
    type ResponseHeader,
    type ResponseLimits,
    type ResponseProblem,
} from './response/parse-response.ts';
export type { AddedRecord, AddRecordsOptions, Enrichment, RecordFilter, RecordQuery, RecordStore, StoredRecord } from './store.ts';
export { type WriteRecordsOptions, writeRecords } from './write-records.ts';
