import type { CheckedRecord } from '../../lib/records/index.ts';

/** What `server.plugins['https-record-schema']` offers. */
export interface HttpsRecordSchema {
    /** One record, or anything else, against the strict profile; all that is wrong with it. */
    validate(record: unknown): CheckedRecord;
}

declare module '@hapi/hapi' {
    interface PluginProperties {
        'https-record-schema': HttpsRecordSchema;
    }
}
