import t from 'tap';
import { readTargetLines, type TargetLine } from '../../../../lib/records/capture/read-target-lines.ts';

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<TargetLine[]> {
    const lines: TargetLine[] = [];
    for await (const line of readTargetLines(source(chunks))) {
        lines.push(line);
    }

    return lines;
}

async function* source(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
        yield Buffer.from(chunk);
    }
}

t.test('reads a list, and passes over blank lines and comments', async (t) => {
    const lines = await read('\uFEFFa.test\r\n\n  # not this one\nhttps://b.test/x# 192.0', '.2.7\n \t\nc.test');
    t.strictSame(lines, [
        { line: 1, ok: true, target: { host: 'a.test', port: 443, path: '/' } },
        { line: 4, ok: true, target: { host: 'b.test', port: 443, path: '/x', address: '192.0.2.7' } },
        { line: 6, ok: true, target: { host: 'c.test', port: 443, path: '/' } },
    ]);
});

t.test('tells a bad line with its number and reason, and goes on', async (t) => {
    const lines = await read('http://a.test/\n', Buffer.from([0xff, 0x0a]), `${'x'.repeat(30_000)}\nb.test\n`);
    t.match(lines, [
        { line: 1, ok: false, reason: 'is not an https URL' },
        { line: 2, ok: false, reason: 'is not valid UTF-8' },
        { line: 3, ok: false, reason: /is longer than \d+ bytes/ },
        { line: 4, ok: true },
    ]);
});
