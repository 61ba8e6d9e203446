import t, { type Test } from 'tap';
import { at, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { storedAuthentication } from '../../../../lib/webhooks/exporters/authentication.ts';
import type { HeaderPairs } from '../../../../lib/webhooks/messages/message-headers.ts';
import { sealHeaders } from '../../../../lib/webhooks/messages/message-headers.ts';
import { vendorNamed } from '../../../../lib/webhooks/messages/signature.ts';
import { sealSecret } from '../../../../lib/webhooks/messages/signing-secret.ts';
import { messageSecrets } from '../../../../lib/webhooks/outcomes/message-secrets.ts';
import { ring as keyRing } from '../../../support/recording-process.ts';

const vendor = vendorNamed('Acme');
const WHSEC = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

/** What must not be shown of a message of an exporter. */
function secretsOf(url: string, additional: HeaderPairs = [], authentication: object = {}, sent: HeaderPairs = additional) {
    const plain = sampleExporter({ url });
    const exporter = {
        ...plain,
        sealedSecret: sealSecret(keyRing, plain.id, WHSEC),
        ...sealHeaders(plain.id, additional, { keyRing, vendor }),
        ...storedAuthentication(plain.id, null, authentication, keyRing),
    };
    return messageSecrets({ exporter, message: null, claimedAt: at(0) }, sent, { keyRing, vendor });
}

function assertHas(t: Test, all: readonly string[], wanted: readonly string[]): void {
    t.same(
        wanted.filter((text) => !all.includes(text)),
        [],
    );
}

t.test('names path and query of a URL and their parts, as they are and decoded, but no word that all have', (t) => {
    const all = secretsOf('https://receiver.example/hooks/T0%2F00/services/abc-def/?token=q%26ry&bad=%zz-what&bare');
    assertHas(t, all, [
        '/hooks/T0%2F00/services/abc-def/?token=q%26ry&bad=%zz-what&bare',
        'T0%2F00',
        'T0/00',
        'abc-def',
        'q%26ry',
        'q&ry',
        '%zz-what',
    ]);
    t.same(
        all.filter((text) => /^(?:hooks|services|token|receiver.example)$/.test(text)),
        [],
    );
    t.same(
        secretsOf('https://receiver.example/').filter((text) => text !== WHSEC && !WHSEC.endsWith(text)),
        [],
    );
    t.end();
});

t.test('names values of headers and their words, but neither schemes nor what is told of every message', (t) => {
    const additional: [string, string][] = [
        ['X-Token', 'Bearer abcdef'],
        ['Cookie', 'a=1; session="deadbeef"'],
        ['Authorization', `Basic ${Buffer.from('ada:hidden').toString('base64')}`],
        ['traceparent', 'of-our-own'],
    ];
    const sent: [string, string][] = [
        ...additional,
        ['User-Agent', 'Acme Exporter'],
        ['X-Acme-Event', 'a_kind'],
        ['X-Acme-Signature', 'c2lnbmF0dXJl'],
    ];
    const all = secretsOf('https://receiver.example/', additional, {}, sent);
    assertHas(t, all, ['Bearer abcdef', 'abcdef', 'deadbeef', 'ada:hidden', 'ada', 'hidden', 'of-our-own', 'c2lnbmF0dXJl', WHSEC]);
    t.same(
        all.filter((text) => /^(?:Bearer|Basic|Acme Exporter|a_kind|)$/.test(text)),
        [],
    );
    t.end();
});

t.test('names what a message authenticates by, and by which proxy it goes', (t) => {
    const all = secretsOf('https://receiver.example/', [], {
        basic: { username: 'ada', password: 'hidden' },
        proxy: { url: 'http://user:pa%2Fss@proxy.example:3128' },
    });
    assertHas(t, all, ['ada', 'hidden', 'user', 'pa%2Fss', 'pa/ss']);
    t.end();
});

t.test('names the credentials of a proxy as connections read them, also where URLs are read otherwise', (t) => {
    for (const [userinfo, wanted] of Object.entries({
        'user:pa\\ss%2Fword': ['user', 'pa\\ss/word', 'pa%5Css%2Fword'],
        'us\\er:pass word': ['us\\er', 'us%5Cer', 'pass word', 'pass%20word'],
    })) {
        const all = secretsOf('https://receiver.example/', [], { proxy: { url: `http://${userinfo}@proxy.example:3128` } });
        assertHas(t, all, wanted);
    }
    t.end();
});
