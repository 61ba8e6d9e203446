import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { digested, sha256In, sha256Of } from '../../lib/content-digest.ts';
import { contentDigest } from '../../plugins/admin-console/operations.ts';

async function* bytes(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
    for (const text of texts) {
        yield Buffer.from(text);
    }
}

async function text(source: AsyncIterable<Uint8Array>): Promise<string> {
    return (await buffer(source)).toString();
}

const HELLO = createHash('sha256').update('hello').digest('base64');

t.test('is the one of the RFC', async (t) => {
    // Appendix D of RFC 9530 has it of this text.
    const sha256 = await sha256Of(bytes('{"hello": ', '"world"}\n'));
    t.equal(contentDigest(sha256), 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:');
});

t.test('is read from a header', async (t) => {
    t.equal(sha256In(contentDigest(HELLO)), HELLO);
    t.equal(sha256In(`sha-512=:YQ==:,\tsha-256=:${HELLO}:;q=1`), HELLO);
    t.equal(sha256In(`sha-256=:${'A'.repeat(43)}=:, sha-256=:${HELLO}:`), HELLO, 'the last one counts');
    // The two bits of the last character that say nothing.
    t.equal(sha256In(`sha-256=:${'A'.repeat(42)}B=:`), `${'A'.repeat(43)}=`);
    t.equal(sha256In(''), undefined);
    t.equal(sha256In('sha-512=:YQ==:'), undefined);
    for (const header of [`sha-256=${HELLO}`, 'sha-256=:YQ==:', 'sha-256=', 'sha-256=:?:, sha-512=:YQ==:']) {
        t.throws(() => sha256In(header), { code: 'INVALID_INPUT', field: 'Content-Digest' }, header);
    }
});

t.test('is checked once all was read', async (t) => {
    t.equal(await text(digested(bytes('hel', 'lo'), HELLO)), 'hello');
    await t.resolves(digested(bytes('hel', 'lo'), HELLO).arrived());
    const cut = digested(bytes('hel'), HELLO);
    const read: string[] = [];
    const reading = async (): Promise<void> => {
        for await (const chunk of cut) {
            read.push(Buffer.from(chunk).toString());
        }
    };
    await t.rejects(reading(), { code: 'INVALID_INPUT', field: 'Content-Digest', message: /cut off, or has changed/ });
    t.same(read, ['hel']);
    await t.rejects(digested(bytes('hello', '!'), HELLO).arrived(), { code: 'INVALID_INPUT' });
});

t.test('may be broken off, and leaves a source that can be read again as it is', async (t) => {
    const reason = new Error('gone');
    await t.rejects(digested(bytes('hel', 'lo'), HELLO).arrived(AbortSignal.abort(reason)), reason);
    const again = digested(Object.assign(bytes('hello'), { again: () => bytes('hello') }), HELLO) as unknown as {
        again(): AsyncIterable<Uint8Array>;
    };
    t.equal(await text(again.again()), 'hello');
});
