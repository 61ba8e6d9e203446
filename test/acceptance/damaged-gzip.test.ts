import { spawnSync } from 'node:child_process';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { rewrite } from '../../cli/records/record-files.ts';
import { type RecordProblem, readRecords } from '../../lib/records/index.ts';
import { imported, ndjson, started } from '../plugins/https-record-schema/record-server.ts';
import { collect } from '../support/collect.ts';
import { allOf, GZIP_FILES, text } from '../support/damaged-gzip.ts';
import { scanwire, scanwireEach } from '../support/scanwire.ts';

/** What a path says of a file. */
interface Answer {
    readonly good: number;
    readonly bad: number;
    /** Of the line where reading ends; null at the end of the file. */
    readonly end: object | null;
}

interface BadLine {
    readonly line: number;
    readonly byteOffset: number;
    readonly problems: readonly RecordProblem[];
}

function answerOf({ good, bad }: Omit<Answer, 'end'>, badLines: readonly BadLine[]): Answer {
    const last = badLines.at(-1);
    const reason = last?.problems[0]?.reason ?? '';
    return { good, bad, end: /reading ends/.test(reason) ? { line: last?.line, byteOffset: last?.byteOffset, reason } : null };
}

async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

async function read(bytes: Buffer, size: number): Promise<Answer> {
    const lines = readRecords(chunks(bytes, size));
    const all = await collect(lines);
    return answerOf(
        lines.totals,
        all.filter((line) => !line.ok),
    );
}

function reported(report: Omit<Answer, 'end'> & { readonly problems: readonly (RecordProblem & Omit<BadLine, 'problems'>)[] }): Answer {
    return answerOf(
        report,
        report.problems.map((problem) => ({ ...problem, problems: [problem] })),
    );
}

/** In pieces as a network delivers them. */
async function checkedInPieces(server: Server, bytes: Buffer, headers: object): Promise<Answer> {
    const sent = http.request(`${server.info.uri}/https-record-schema/check`, { method: 'POST', headers: { ...ndjson, ...headers } });
    for (let at = 0; at < bytes.length; at += 50_000) {
        sent.write(bytes.subarray(at, at + 50_000));
    }

    const response = new Promise<http.IncomingMessage>((resolve, reject) => sent.on('response', resolve).on('error', reject));
    sent.end();
    const report = (await json(await response)) as Answer & { readonly lines: readonly BadLine[] };
    return answerOf(report, report.lines);
}

async function stored(server: Server, bytes: Buffer, headers: object): Promise<Answer> {
    const told = await imported(server, bytes, '', headers);
    return answerOf(told.at(-1) as unknown as Answer, told.slice(0, -1) as unknown as BadLine[]);
}

async function checked(server: Server, payload: Buffer, headers: object): Promise<Answer> {
    const { result } = await server.inject({
        method: 'POST',
        url: '/https-record-schema/check',
        headers: { ...ndjson, ...headers },
        payload,
    });
    const report = result as Answer & { readonly lines: readonly BadLine[] };
    return answerOf(report, report.lines);
}

/** By GNU gzip: whole lines only. */
function linesByGzip(bytes: Buffer): number {
    const { stdout } = spawnSync('gzip', ['-dc'], { input: bytes, maxBuffer: 64 * 1_048_576 });
    return stdout.toString('latin1').split('\n').length - 1;
}

const LINE = text(1);
const BOMB = gzipSync(Buffer.concat([LINE, Buffer.alloc(100 * 1_048_576, ' ')]), { level: 9 });

/** What `records check` says of each file, by its name and on stdin. */
const ofFiles = await checkedFiles({ ...GZIP_FILES, bomb: { bytes: BOMB } });

interface Checked {
    readonly file: Answer;
    readonly stdin: Answer;
}

async function checkedFiles(files: Readonly<Record<string, { readonly bytes: Buffer }>>): Promise<ReadonlyMap<Buffer, Checked>> {
    const all = Object.values(files);
    const folder = t.testdir(Object.fromEntries(all.map(({ bytes }, index) => [`${index}.gz`, bytes])));
    const check = ['records', 'check', '--json'];
    const ran = await scanwireEach(
        all.flatMap(({ bytes }, index) => [{ args: [...check, `${folder}/${index}.gz`] }, { args: [...check, '-'], input: bytes }]),
    );
    const answers = ran.map(({ stdout }) => reported(JSON.parse(stdout)));
    return new Map(all.map(({ bytes }, index) => [bytes, { file: answers[2 * index] as Answer, stdin: answers[2 * index + 1] as Answer }]));
}

/** Every way in, with what it says of the file. */
async function* everyPath(t: Test, bytes: Buffer): AsyncGenerator<readonly [path: string, answer: Answer | undefined], void, undefined> {
    const folder = t.testdir({});
    yield ['records check file', ofFiles.get(bytes)?.file];
    yield ['records check -', ofFiles.get(bytes)?.stdin];
    yield ['records write', reported(await rewrite(chunks(bytes, 1_000_000), { output: `${folder}/out` }))];
    yield ['readRecords', await read(bytes, 1460)];

    const server = await started(t);
    for (const headers of [{}, { 'content-encoding': 'gzip' }]) {
        const called = JSON.stringify(headers);
        yield [`POST check ${called}`, await checked(server, bytes, headers)];
        yield [`POST check in pieces ${called}`, await checkedInPieces(server, bytes, headers)];
        yield [`POST records ${called}`, await stored(server, bytes, headers)];
    }
}

for (const [name, { bytes, reason }] of Object.entries(GZIP_FILES)) {
    t.test(`reads a gzip file alike on every path: ${name}`, async (t) => {
        const all = allOf(bytes);
        const plain = await read(reason === null ? all : all.subarray(0, all.lastIndexOf('\n') + 1), 65_536);
        const expected = await read(bytes, 65_536);
        t.match(expected, { good: plain.good, bad: plain.bad + (reason === null ? 0 : 1), end: reason === null ? null : { reason } });
        t.ok(expected.good + expected.bad >= linesByGzip(bytes));
        for await (const [path, answer] of everyPath(t, bytes)) {
            t.same(answer, expected, path);
        }
    });
}

t.test('stops at a gzip bomb on every path', async (t) => {
    const reasons = {
        // A stranger's CPU time is dearer than one's own.
        POST: 'is where reading ends: The batch takes more work than its bytes allow: it expands too much, or too many bad lines are to be described',
        other: 'is where reading ends: The gzip file expands more than 250 times: not read any further',
    };
    // A pipe of its own, which nobody reads to its end.
    const piped = await scanwire(['records', 'check', '-', '--json'], { input: BOMB });
    t.same(reported(JSON.parse(piped.stdout)), ofFiles.get(BOMB)?.stdin);
    for await (const [path, answer] of everyPath(t, BOMB)) {
        const reason = path.startsWith('POST') ? reasons.POST : reasons.other;
        t.same(answer, { good: 1, bad: 1, end: { line: 2, byteOffset: LINE.length, reason } }, path);
    }
});
