import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { type HttpsRecord, readRecords, stringifyRecord, writeRecords } from '../../../lib/records/index.ts';
import { arbitraryRecord } from './arbitrary-record.ts';

const record: HttpsRecord = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };

async function bytesOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for await (const part of source) {
        parts.push(part);
    }

    return Buffer.concat(parts);
}

t.test('writes the keys in one order, whatever order they came in', async (t) => {
    const mixed = { subject: { CN: 'a', OU: 'b' }, vhost: 'v', port: 1, path: '/', ip: '192.0.2.7', host: 'h', data: '' };
    t.equal(
        stringifyRecord(mixed),
        '{"data":"","host":"h","ip":"192.0.2.7","path":"/","port":1,"vhost":"v","subject":{"OU":"b","CN":"a"}}',
    );
    t.equal(stringifyRecord(record), '{"data":"SFRUUA==","host":"www.example.com","ip":"192.0.2.7","port":443}');
    t.equal((await bytesOf(writeRecords([record, record]))).toString(), `${stringifyRecord(record)}\n${stringifyRecord(record)}\n`);
    t.equal((await bytesOf(writeRecords([]))).length, 0);
});

t.test('reads back what it wrote, plain and packed', async (t) => {
    await fc.assert(
        fc.asyncProperty(fc.array(arbitraryRecord as unknown as fc.Arbitrary<HttpsRecord>), fc.boolean(), async (records, gzip) => {
            const lines = readRecords(writeRecords(records, { gzip }));
            const back: HttpsRecord[] = [];
            for await (const line of lines) {
                back.push(line.ok ? line.record : record);
            }

            t.same(back, records);
        }),
        { numRuns: 200 },
    );
});

t.test('packs with gzip as others unpack it', async (t) => {
    t.equal(gunzipSync(await bytesOf(writeRecords([record], { gzip: true }))).toString(), `${stringifyRecord(record)}\n`);
    t.equal(gunzipSync(await bytesOf(writeRecords([], { gzip: true }))).toString(), '');
});

t.test('refuses a record that breaks the schema, with number, field and reason', async (t) => {
    const bad = { ...record, port: '443' } as unknown as HttpsRecord;
    for (const gzip of [false, true]) {
        await t.rejects(bytesOf(writeRecords([record, bad], { gzip })), {
            code: 'INVALID_INPUT',
            field: 'port',
            message: 'Record 2: port must be a number',
        });
    }
});

t.test('ends its source when nobody wants more', async (t) => {
    for (const gzip of [false, true]) {
        const ended = new EventTarget();
        const closing = once(ended, 'ended');
        async function* endless(): AsyncGenerator<HttpsRecord> {
            try {
                for (;;) {
                    yield { ...record, data: Buffer.alloc(30_000, String(Math.random())).toString('base64') };
                }
            } finally {
                ended.dispatchEvent(new Event('ended'));
            }
        }

        for await (const chunk of writeRecords(endless(), { gzip })) {
            t.ok(chunk.length > 0);
            break;
        }

        await closing;
    }
});
