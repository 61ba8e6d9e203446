import { readFileSync } from 'node:fs';
import t from 'tap';
import { decodeRecord, type HttpsRecord } from '../../../lib/records/index.ts';

const captured = readFileSync('fixtures/records/https.jsonl', 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as HttpsRecord);
const minimal = { host: 'www.example.com', ip: '192.0.2.7', port: 443 };

t.test('decodes captures of a real server', (t) => {
    const decoded = captured.map((record) => decodeRecord(record));
    t.match(decoded, [
        {
            host: 'web.example.test',
            ip: '127.0.0.2',
            port: 443,
            path: '/',
            vhost: 'web.example.test',
            subject: { OU: 'Web', CN: 'web.example.test' },
            response: { http: true, version: '1.1', status: 200, reason: 'OK', title: 'Welcome', truncated: false, problems: [] },
        },
        { port: 8443, path: '/plain', response: { status: 200, title: null, truncated: false, problems: [] } },
        { host: '127.0.0.2', vhost: null, response: { status: 200, title: 'Welcome', truncated: false, problems: [] } },
    ]);
    t.same(
        decoded.map(({ response }) => (response.http ? response.body.toString() : null)),
        [
            '<!doctype html><title>Welcome</title><h1>Welcome</h1>',
            'plain text, plain text, plain text, plain text',
            '<!doctype html><title>Welcome</title><h1>Welcome</h1>',
        ],
    );
    t.end();
});

t.test('says null for what a record leaves out', (t) => {
    t.strictSame(decodeRecord({ ...minimal, data: '' }), {
        ...minimal,
        path: null,
        vhost: null,
        subject: null,
        response: { http: false, bytes: Buffer.alloc(0) },
    });
    t.end();
});

t.test('hands its limits on', (t) => {
    const data = Buffer.from('HTTP/1.1 200 OK\r\n\r\nabcdef').toString('base64');
    const { response } = decodeRecord({ ...minimal, data }, { maxBodyBytes: 3 });
    t.equal(response.http && response.body.toString(), 'abc');
    t.end();
});
