import { randomBytes } from 'node:crypto';
import t from 'tap';
import { assertOpens, type KeyRing, keyRing, rememberingRing, sealingKeyId } from '../../../lib/keys/key-ring.ts';

const ring = () => keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

t.test('opens what it sealed, in the same context', async (t) => {
    const keys = ring();
    for (const secret of ['', 'secret', '🔑'.repeat(1000)]) {
        t.equal(keys.open(keys.seal(secret, 'exporter:1'), 'exporter:1'), secret);
    }
});

t.test('seals the same secret differently each time', async (t) => {
    const keys = ring();
    const sealed = keys.seal('secret', 'c');

    t.not(keys.seal('secret', 'c'), sealed);
    t.notMatch(sealed, 'secret');
});

t.test('opens nothing in another context', async (t) => {
    const keys = ring();

    t.throws(() => keys.open(keys.seal('secret', 'exporter:1'), 'exporter:2'), { code: 'UNSEALABLE' });
});

t.test('opens nothing that was altered, at any place', async (t) => {
    const keys = ring();
    const sealed = keys.seal('secret', 'c');
    const start = sealed.lastIndexOf('.') + 1;
    const bytes = Buffer.from(sealed.slice(start), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
        const altered = Buffer.from(bytes);
        altered[index] = (altered[index] ?? 0) ^ 1;
        t.throws(() => keys.open(sealed.slice(0, start) + altered.toString('base64url'), 'c'), { code: 'UNSEALABLE' });
    }
});

t.test('says that a text was altered, not that its key may be wrong, once the key has opened most', async (t) => {
    const [k1, other] = [randomBytes(32), randomBytes(32)];
    const sealed = keyRing({ current: 'k1', keys: { k1 } }).seal('secret', 'c');
    const wrong = keyRing({ current: 'k1', keys: { k1: other } });
    t.throws(() => wrong.open(sealed, 'c'), { code: 'UNSEALABLE', message: /the key has other bytes, or/ });

    const right = keyRing({ current: 'k1', keys: { k1, other } });
    right.open(sealed, 'c');
    right.open(right.seal('secret', 'own'), 'own');
    t.throws(() => right.open(sealed, 'another'), { message: /the key has other bytes, or/ }, 'what it has sealed itself shows nothing');
    right.open(keyRing({ current: 'k1', keys: { k1 } }).seal('secret', 'd'), 'd');
    t.throws(() => right.open(sealed, 'another'), { code: 'UNSEALABLE', message: /key k1: it was altered or sealed for something else$/ });
    const ofOther = keyRing({ current: 'other', keys: { other: k1 } }).seal('secret', 'c');
    t.throws(() => right.open(ofOther, 'c'), { code: 'UNSEALABLE', message: /the key has other bytes, or/ }, 'of each key by itself');
});

t.test('does not take for right what opens only what it has sealed itself, however much that is', async (t) => {
    const sealed = ring().seal('secret', 'c');
    const wrong = ring();
    for (let count = 0; count < 12_000; count += 1) {
        wrong.open(wrong.seal('secret', `own:${count}`), `own:${count}`);
    }
    t.throws(() => wrong.open(sealed, 'c'), { code: 'UNSEALABLE', message: /the key has other bytes, or/ });
});

t.test('opens no text that is not sealed', async (t) => {
    const keys = ring();
    const short = Buffer.alloc(27).toString('base64url');
    for (const text of ['', 'secret', 'v1.k1', 'v1.k1.', 'v1.k1.AA', `v1.k1.${short}`, 'v2.k1.AAAA', 'v1..AAAA', 'v1.k1.A A']) {
        t.throws(() => keys.open(text, 'c'), { code: 'UNSEALABLE' }, text);
    }
});

t.test('opens what an older key sealed and seals with the current one', async (t) => {
    const [k1, k2] = [randomBytes(32), randomBytes(32)];
    const old = keyRing({ current: 'k1', keys: { k1 } });
    const rotated = keyRing({ current: 'k2', keys: { k1, k2 } });
    const sealed = old.seal('secret', 'c');

    t.equal(rotated.open(sealed, 'c'), 'secret');
    t.equal(sealingKeyId(sealed), 'k1');
    t.equal(sealingKeyId(rotated.seal('secret', 'c')), 'k2');
    t.throws(() => old.open(rotated.seal('secret', 'c'), 'c'), { code: 'UNSEALABLE', message: /k2/ });
});

t.test('knows the sealing key of nothing else', async (t) => {
    t.equal(sealingKeyId('scw_secret'), null);
});

t.test('refuses a ring that cannot work', async (t) => {
    t.throws(() => keyRing({ current: 'k2', keys: { k1: randomBytes(32) } }), { code: 'MISCONFIGURED', message: /k2/ });
    t.throws(() => keyRing({ current: 'k.1', keys: { 'k.1': randomBytes(32) } }), { code: 'MISCONFIGURED' });
    t.throws(() => keyRing({ current: 'k1', keys: { k1: randomBytes(31) } }), { code: 'MISCONFIGURED', message: /32 bytes/ });
});

t.test('opens one text of each sealing key, and looks at the key of every one', async (t) => {
    const [k1, k2, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];
    const first = keyRing({ current: 'k1', keys: { k1 } });
    const rotated = keyRing({ current: 'k2', keys: { k1, k2 } });
    const texts = [
        { sealed: first.seal('one', 'a'), context: 'a' },
        { sealed: first.seal('two', 'b'), context: 'b' },
        { sealed: rotated.seal('three', 'c'), context: 'c' },
    ];
    const opened: string[] = [];
    const open: KeyRing['open'] = (sealed, context) => {
        opened.push(context);
        return rotated.open(sealed, context);
    };
    assertOpens({ ...rotated, open }, texts);
    t.strictSame(opened.sort(), ['a', 'c']);
    assertOpens(first, []);
    const altered = { sealed: first.seal('four', 'd'), context: 'of another row' };
    assertOpens(rotated, [altered, ...texts]);
    t.throws(() => assertOpens(rotated, [altered, altered, ...texts]), { message: /for of another row/ }, 'as many open as do not');
    t.throws(
        () => assertOpens(rotated, [altered]),
        { code: 'MISCONFIGURED', message: /for of another row/ },
        'nothing else shows that the key is right',
    );

    const refused = { code: 'MISCONFIGURED', field: 'keyRing' };
    t.throws(() => assertOpens(first, texts), { ...refused, message: /for c: Missing key k2/ });
    t.throws(() => assertOpens(keyRing({ current: 'k2', keys: { k2 } }), texts), { ...refused, message: /for a: Missing key k1/ });
    t.throws(() => assertOpens(keyRing({ current: 'k1', keys: { k1: other, k2 } }), texts), { ...refused, message: /for a: .*key k1/ });
    t.throws(() => assertOpens(first, [{ sealed: 'plain text', context: 'a' }]), { ...refused, message: /^(?!.*plain text)/ });
});

t.test('opens a text once for who remembers, and each in its own context', async (t) => {
    const keys = ring();
    let opened = 0;
    const open: KeyRing['open'] = (sealed, context) => {
        opened += 1;
        return keys.open(sealed, context);
    };
    const remembering = rememberingRing({ ...keys, open });
    const sealed = remembering.seal('secret', 'exporter:1');
    t.equal(remembering.open(sealed, 'exporter:1'), 'secret');
    t.equal(remembering.open(sealed, 'exporter:1'), 'secret');
    t.equal(opened, 1);
    t.throws(() => remembering.open(sealed, 'exporter:2'), { code: 'UNSEALABLE' });
    t.equal(remembering.current, 'k1');
    t.strictSame([...remembering.ids], ['k1']);
});
