import fc from 'fast-check';
import t from 'tap';
import { type Line, lineSplitter } from '../../lib/line-splitter.ts';

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
    for (const part of parts) {
        yield typeof part === 'string' ? Buffer.from(part) : part;
    }
}

async function linesOf(source: AsyncIterable<Uint8Array>, limit = 100): Promise<[number, string | null][]> {
    const splitter = lineSplitter(limit);
    const lines: [number, string | null][] = [];
    const take = (found: Iterable<Line>): void => {
        for (const { number, bytes } of found) {
            lines.push([number, bytes === null ? null : Buffer.from(bytes).toString()]);
        }
    };

    for await (const chunk of source) {
        take(splitter.push(chunk));
    }

    take(splitter.end());
    return lines;
}

t.test('splits at LF and CR LF, over chunks, and does not need the last one', async (t) => {
    t.same(await linesOf(chunks('a\nb', 'c\r', '\n\nd')), [
        [1, 'a'],
        [2, 'bc'],
        [3, ''],
        [4, 'd'],
    ]);
    t.same(await linesOf(chunks('a\n')), [[1, 'a']]);
    t.same(await linesOf(chunks()), []);
});

t.test('drops the bytes of a line beyond the limit and goes on after it', async (t) => {
    const long = 'x'.repeat(11);
    t.same(await linesOf(chunks('ok\n', long, '\r\nok'), 10), [
        [1, 'ok'],
        [2, null],
        [3, 'ok'],
    ]);
    t.same(await linesOf(chunks('x'.repeat(10), '\r\n', 'x'.repeat(1000), 'x\n'), 10), [
        [1, 'x'.repeat(10)],
        [2, null],
    ]);
});

t.test('reads the same lines however the bytes are cut', async (t) => {
    await fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom('a', 'bb', '\r', '\n', '\r\n')), async (parts) => {
            const text = parts.join('');
            const whole = await linesOf(chunks(text));
            const cut = await linesOf(chunks(...[...text]));
            t.same(cut, whole);
            t.same(
                whole.map(([, line]) => line),
                text.replace(/\n$/, '') === '' && !text.includes('\n')
                    ? []
                    : text
                          .replace(/\n$/, '')
                          .split('\n')
                          .map((line) => line.replace(/\r$/, '')),
            );
        }),
        { numRuns: 200 },
    );
});
