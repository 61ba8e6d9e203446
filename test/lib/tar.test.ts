import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { TAR_END, tarEntry, unpackTar } from '../../lib/tar.ts';

t.test('unpacks files however they are cut into chunks', async (t) => {
    const folder = t.testdir({});
    const contents = ['', 'a', 'b'.repeat(512), 'c'.repeat(1300)].map((text) => Buffer.from(text));
    const tar = Buffer.concat([...contents.flatMap((content, index) => tarEntry(`some/${index}`, content)), TAR_END]);
    for (const size of [1, 511, 512, 700, tar.length]) {
        const chunks = Array.from({ length: Math.ceil(tar.length / size) }, (_, index) => tar.subarray(index * size, (index + 1) * size));
        const into = join(folder, `${size}`);
        await unpackTar(chunks, into);
        t.same(
            contents.map((_, index) => readFileSync(join(into, `some/${index}`))),
            contents,
        );
        t.equal(statSync(join(into, 'some/1')).mode & 0o777, 0o600);
    }
});

t.test('writes what has come before it asks for more, and closes its source', async (t) => {
    const folder = join(t.testdir({}), 'into');
    const chunk = Buffer.alloc(100_000, 'x');
    const [header] = tarEntry('large', { length: 50 * chunk.length } as Uint8Array);
    let closed = false;
    async function* source(): AsyncGenerator<Uint8Array> {
        try {
            yield header as Uint8Array;
            for (let count = 0; count < 20; count += 1) {
                t.ok(count === 0 || statSync(join(folder, 'large')).size >= (count - 1) * chunk.length);
                yield chunk;
            }
        } finally {
            closed = true;
        }
    }

    await t.rejects(unpackTar(source(), folder), { code: 'INVALID_INPUT', message: 'The archive was cut off' });
    t.ok(closed);
});
