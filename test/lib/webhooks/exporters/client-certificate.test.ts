import t from 'tap';
import { type TlsIdentity, tlsContext } from '../../../../lib/webhooks/exporters/client-certificate.ts';
import { authority, certificate } from '../../../support/certificates.ts';

const ROOT = await authority('Root');
const [ONE, TWO] = [await certificate({ name: 'one', authority: ROOT }), await certificate({ name: 'two', authority: ROOT })];

/** Authorities as long as they may be: text between certificates is allowed. */
function longAuthorities(name: string): string {
    return `${name.padEnd(65_000 - ROOT.cert.length, '.')}\n${ROOT.cert}`;
}

function contextOf(identity: TlsIdentity): object {
    const { secureContext } = tlsContext(identity);
    t.ok(secureContext);
    return secureContext as object;
}

function identityOf({ cert, key }: typeof ONE): TlsIdentity {
    return { ca: ROOT.cert, clientCertificate: { certificate: cert, key } };
}

t.test('is made once for the same authorities and the same certificate, and for no others', async (t) => {
    const context = contextOf(identityOf(ONE));
    t.equal(contextOf(structuredClone(identityOf(ONE))), context, 'however often they are unsealed');
    t.equal(contextOf({ url: 'https://proxy.example', ...identityOf(ONE) } as TlsIdentity), context);
    const others = [identityOf(TWO), { ca: ROOT.cert }, { ca: `\n${ROOT.cert}` }, { clientCertificate: identityOf(ONE).clientCertificate }];
    const all = [context, ...others.map((other) => contextOf(other as TlsIdentity))];
    t.equal(new Set(all).size, all.length);
});

t.test('takes nothing that cannot be used for what could be', async (t) => {
    contextOf(identityOf(ONE));
    const mixed = { ca: ROOT.cert, clientCertificate: { certificate: ONE.cert, key: TWO.key } };
    for (let times = 0; times < 2; times += 1) {
        t.throws(() => tlsContext(mixed), { code: 'invalid_exporter' });
        t.throws(() => tlsContext({ ca: '' }), { code: 'invalid_exporter' });
    }
});

t.test('is forgotten when many others have been used since, so that they fill no memory', async (t) => {
    const [first, used] = ['first', 'used'].map((name) => ({ ca: longAuthorities(name) })) as [TlsIdentity, TlsIdentity];
    const contexts = [first, used].map(contextOf);
    for (let count = 0; count < 80; count += 1) {
        contextOf({ ca: longAuthorities(`other ${count}`) });
        t.equal(contextOf(used), contexts[1]);
    }
    t.not(contextOf(first), contexts[0]);
});
