import fc from 'fast-check';
import t from 'tap';
import { type ChunkWalk, chunkWalk, nextChunk } from '../../../../lib/records/response/chunks.ts';

interface Walked {
    readonly state: ChunkWalk['state'];
    readonly at: number;
    readonly data: string;
}

/** What a walk finds when the bytes come in pieces that end at `cuts`. */
function walked(text: string, cuts: readonly number[], isAll = false): Walked {
    const bytes = Buffer.from(text, 'latin1');
    const walk = chunkWalk(0);
    let data = '';
    for (const cut of [...cuts, bytes.length]) {
        while (nextChunk(walk, bytes.subarray(0, cut), isAll && cut === bytes.length)) {
            data += bytes.toString('latin1', walk.dataStart, walk.at);
        }
    }

    return { state: walk.state, at: walk.at, data };
}

t.test('finds the data and the end', async (t) => {
    const cases: readonly (readonly [string, ChunkWalk['state'], string])[] = [
        ['3\r\nabc\r\n0\r\n\r\n', 'end', 'abc'],
        ['3\nabc\n0\n\n', 'end', 'abc'],
        [' 1;x=y\r\na\r\n2\t\r\nbc\r\n00\r\nX: y\r\n\r\n', 'end', 'abc'],
        ['3\r\nabc\r\n0\r\nX: y\r\n', 'trailer', 'abc'],
        ['3\r\nabc\r\n', 'size', 'abc'],
        ['3\r\nab', 'data', 'ab'],
        ['3\r\nabcd\r\n0\r\n\r\n', 'broken', 'abc'],
        ['3\r\nabc\r\nx\r\n', 'broken', 'abc'],
        ['-3\r\n', 'broken', ''],
        ['', 'size', ''],
    ];
    for (const [text, state, data] of cases) {
        t.match(walked(text, []), { state, data }, JSON.stringify(text));
        t.match(walked(`${text}${state === 'end' ? 'more' : ''}`, []), { state, data, at: state === 'end' ? text.length : Number });
    }
});

t.test('takes a size that ends with the bytes only when there are no more', async (t) => {
    t.match(walked('1\r\na\r\n0', []), { state: 'size' });
    t.match(walked('1\r\na\r\n0', [], true), { state: 'trailer', data: 'a' });
});

t.test('finds the same however the bytes are cut', async () => {
    const part = fc.constantFrom('0', '1', '3', 'a', 'abc', ';x', '\r\n', '\n', '\r', ' ', '\r\n0\r\n\r\n', '3\r\nabc\r\n');
    const text = fc.array(part, { maxLength: 20 }).map((parts) => parts.join(''));
    fc.assert(
        fc.property(text, fc.array(fc.nat(40), { maxLength: 8 }), fc.boolean(), (body, cuts, isAll) => {
            const sorted = cuts.filter((cut) => cut <= body.length).sort((one, other) => one - other);
            const [cut, whole] = [walked(body, sorted, isAll), walked(body, [], isAll)];
            return cut.state === whole.state && cut.at === whole.at && cut.data === whole.data;
        }),
        { numRuns: 3000 },
    );
});
