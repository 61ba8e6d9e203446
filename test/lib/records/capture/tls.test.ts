import { X509Certificate } from 'node:crypto';
import { generate } from 'selfsigned';
import t, { type Test } from 'tap';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { certificateSubject } from '../../../../lib/records/capture/tls.ts';
import { captureRecord, checkRecord, type HttpsRecord } from '../../../../lib/records/index.ts';
import { endpoint } from '../../../support/endpoint.ts';

const guard = egressGuard({ allow: ['127.0.0.1'] });

type Part = readonly [shortName: string, value: string];

/** What a record says of a certificate with these parts in its subject, in this order. */
async function subjectOf(t: Test, ...parts: readonly Part[]): Promise<HttpsRecord['subject']> {
    const made = await generate(
        parts.map(([shortName, value]) => ({ shortName, value })),
        { keyType: 'ec', algorithm: 'sha256' },
    );
    const server = await endpoint((socket) => socket.end('x'), { key: made.private, cert: made.cert });
    t.teardown(() => server.close());
    const record = await captureRecord(`127.0.0.1:${server.port}`, { guard });
    t.match(checkRecord(record), { ok: true });
    return record.subject;
}

t.test('takes CN and OU, and no other part', async (t) => {
    t.strictSame(await subjectOf(t, ['C', 'DE'], ['O', 'Example'], ['OU', 'Web'], ['CN', 'a.test']), { OU: 'Web', CN: 'a.test' });
    t.strictSame(await subjectOf(t, ['CN', 'a.test']), { CN: 'a.test' });
    t.strictSame(await subjectOf(t, ['O', 'Example']), {});
});

t.test('takes the last of several', async (t) => {
    t.strictSame(await subjectOf(t, ['OU', 'One'], ['CN', 'a.test'], ['OU', 'Two'], ['CN', 'b.test']), { OU: 'Two', CN: 'b.test' });
});

t.test('keeps text as it is, however strange, and cuts what is huge', async (t) => {
    const strange = 'a.test\u0000.evil.test\u001b[31m \u202eBücher 管理 \u{1f512}';
    t.strictSame(await subjectOf(t, ['OU', 'Büro'], ['CN', strange]), { OU: 'Büro', CN: strange });
    const { OU = '', CN = '' } = (await subjectOf(t, ['OU', `x${'\u{1f512}'.repeat(1000)}`], ['CN', 'y'.repeat(5000)])) ?? {};
    t.equal(CN, 'y'.repeat(1024));
    t.equal(OU.length, 1024);
    t.equal(OU.at(-1), '\uFFFD', 'a pair of surrogates is not split');
});

t.test('is not taken in by text that looks like another part', async (t) => {
    for (const forged of ['a\nCN=b', 'a\nOU=b', 'a + CN=b', 'a, CN=b', 'CN=b', ' a\\ "b" ', '#0c00', '\nCN=', 'a\\0ACN=b', '+']) {
        const place = 'x'.repeat(forged.length);
        const made = await generate([{ shortName: 'CN', value: place }], { keyType: 'ec' });
        const bytes = new X509Certificate(made.cert).raw;
        // behind the last 2.5.4.3, the subject's: the issuer has another, and one letter is in the serial number too, by chance
        bytes.write(forged, bytes.indexOf(place, bytes.lastIndexOf('\x55\x04\x03', 'latin1')));
        t.strictSame(certificateSubject({ getPeerX509Certificate: () => new X509Certificate(bytes) }), { CN: forged });
    }
});

t.test('says nothing of a certificate that Node cannot read', (t) => {
    const unreadable = { getPeerX509Certificate: () => new X509Certificate(Buffer.from('no certificate')) };
    t.equal(certificateSubject(unreadable), undefined);
    t.end();
});
