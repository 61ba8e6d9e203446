import fc from 'fast-check';
import t from 'tap';
import { type HttpsRecord, stringifyRecord } from '../../../lib/records/record.ts';
import { arbitraryRecord } from './arbitrary-record.ts';

t.test('is the record, whatever the order of its keys, on one line that UTF-8 and PostgreSQL can hold', (t) => {
    fc.assert(
        fc.property(arbitraryRecord, fc.string({ unit: 'binary' }), (some, vhost) => {
            const record = { ...some, vhost } as unknown as HttpsRecord;
            const reversed = Object.fromEntries(Object.entries(record).toReversed()) as unknown as HttpsRecord;
            const line = stringifyRecord(record);
            t.strictSame(JSON.parse(line), JSON.parse(JSON.stringify(record)));
            return stringifyRecord(reversed) === line && !/[\0\n\r\p{Cs}]/u.test(line);
        }),
    );
    t.end();
});
