import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { restore } from '../../cli/backup.ts';
import { dataFolder } from '../../cli/data-folder.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { TAR_END, tarEntry } from '../../lib/tar.ts';

/*
 * A backup may come from somebody else, who has written into it what they want: nothing but the files of a backup may come of it, and those
 * in the new folder only.
 */

t.setTimeout(240_000);

const BLOCK = 512;

/** A header of another form than ours: fields by where they begin, and the sum that belongs to them. */
function header(name: string, fields: Readonly<Record<number, string>>): Buffer {
    const [plain = Buffer.alloc(0)] = tarEntry(name, Buffer.alloc(0));
    const forged = Buffer.from(plain);
    for (const [at, value] of Object.entries(fields)) {
        forged.write(value, Number(at), 'latin1');
    }

    return summed(forged);
}

function summed(block: Buffer): Buffer {
    const sum = block.fill(' ', 148, 156).reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return block;
}

const folderEntry = (name: string): Buffer => header(name, { 156: '5' });
const text = (value: string): Buffer => Buffer.from(value);

/** The data directory as PGlite writes it, in small. */
const DATABASE: readonly (readonly Uint8Array[])[] = [
    tarEntry('/PG_VERSION', text('17\n')),
    [folderEntry('/base')],
    [folderEntry('/base/1')],
    tarEntry('/base/1/112', Buffer.alloc(1_300, 'x')),
    tarEntry('/base/1/1247_fsm', Buffer.alloc(512, 'y')),
    tarEntry('/postgresql.conf', text('port = 5432\n')),
];

type Entries = readonly (readonly Uint8Array[])[];

const tarOf = (entries: Entries): Buffer => Buffer.concat([...entries.flat(), TAR_END]);
const backupOf = (database: Uint8Array, ...more: Entries): Buffer =>
    tarOf([
        tarEntry('database.tar', database),
        tarEntry('key-ring.json', text('{}')),
        tarEntry('license/license.jws', text('a.b.c')),
        ...more,
    ]);
const whole = backupOf(tarOf(DATABASE));

/** A folder with the backup in it, and with the one that is to be made of it, deep enough to be left by some `..`. */
function sandbox(root: string) {
    const parent = join(root, 'a/b');
    mkdirSync(parent, { recursive: true });
    const [file, target] = [join(parent, 'backup'), join(parent, 'data')];
    return {
        target,
        /** What came of it; undefined when it was restored. */
        async restored(bytes: Uint8Array): Promise<unknown> {
            writeFileSync(file, bytes);
            return await restore(dataFolder(target), file).then(
                () => undefined,
                (error: unknown) => error,
            );
        },
        /** All that there is beside the backup, links not followed. */
        left: (): readonly string[] =>
            (readdirSync(root, { recursive: true }) as string[]).filter((name) => !['a', 'a/b', 'a/b/backup'].includes(name)).sort(),
    };
}

const FILES = [
    ...['', '/database', '/database/PG_VERSION', '/database/base', '/database/base/1', '/database/base/1/112', '/database/base/1/1247_fsm'],
    ...['/database/postgresql.conf', '/key-ring.json', '/license'],
    '/license/license.jws',
].map((name) => `a/b/data${name}`);

t.test('restores what a backup holds', async (t) => {
    for (const bytes of [whole, gzipSync(whole)]) {
        const { restored, left } = sandbox(t.testdir({}));
        t.equal(await restored(bytes), undefined);
        t.same(left(), FILES);
    }
});

t.test('refuses by its name what no backup of ours has, and leaves nothing', async (t) => {
    const empty = Buffer.alloc(0);
    const inDatabase = (...entries: Entries): Buffer => backupOf(tarOf([...DATABASE, ...entries]));
    const deep = `${'x/'.repeat(40)}..`;
    for (const [bytes, message] of [
        [backupOf(tarOf(DATABASE), tarEntry('database/PG_VERSION', empty)), 'it holds two databases'] as const,
        ...[
            '../outside',
            '/etc/outside',
            'license/../../outside',
            '.',
            '',
            './key-ring.json',
            'server.json',
            'license/other',
            'a\0b',
            'database/notes.txt',
            'databases/PG_VERSION',
        ].map(
            (name) =>
                [backupOf(tarOf(DATABASE), tarEntry(name, empty)), `"${name.replace(/\0.*/, '')}", which does not belong into it`] as const,
        ),
        ...[
            '../outside',
            '/../outside',
            '/base/../../outside',
            'other',
            '/etc/passwd',
            '/base/a b',
            '/base/\x1b[2J',
            `/base/${deep}`,
            '/base/',
        ].map((name) => [inDatabase(tarEntry(name, empty)), 'which does not belong into it'] as const),
        [backupOf(tarOf(DATABASE), [header('license', { 345: '../..' })]), '"../../license", which does not belong'],
        [backupOf(tarOf(DATABASE), [folderEntry('license/key-ring.json')]), '"license/key-ring.json", which does not belong'],
        ...['1', '2', '3', '4', '6', '7', 'x', 'L', 'g', '\0'].map(
            (type) =>
                [
                    inDatabase([header('/base/1/1', { 156: type, 157: '/etc' })]),
                    '"/base/1/1", which is neither a file nor a folder',
                ] as const,
        ),
        [inDatabase(tarEntry('/PG_VERSION', empty)), '"/PG_VERSION", which takes the place of another entry'],
        [inDatabase(tarEntry('/base', empty)), '"/base", which takes the place of another entry'],
        [inDatabase([folderEntry('/PG_VERSION')]), '"/PG_VERSION", which takes the place of another entry'],
        [inDatabase(tarEntry('/PG_VERSION/1', empty)), '"/PG_VERSION/1", which takes the place of another entry'],
        [backupOf(tarOf(DATABASE), tarEntry('database.tar', empty)), '"database.tar", which takes the place of another entry'],
        ...['99999999999', '-0000000001', '', '\x80\0\0\0\0\0\0\0\0\0\0\x01', '0x000000010', '1e9'].map(
            (size) => [inDatabase([header('/base/1/1', { 124: size.padEnd(12, '\0') })]), '"/base/1/1", whose size is none'] as const,
        ),
        [inDatabase([header('/base/2', { 156: '5', 124: '00000000001' })]), '"/base/2", whose size is none'],
        [inDatabase([header('/base/1/1', { 124: '77777777777\0' })]), 'The archive was cut off'],
        [whole.subarray(0, 300), 'The archive was cut off'],
        [backupOf(tarOf(DATABASE), [header('', { 345: '' }).fill(0, 0, 1)]), '"", which does not belong into it'],
        [tarOf([tarEntry('key-ring.json', empty)]), 'it holds no database'],
        [backupOf(tarOf(DATABASE.slice(1))), 'it holds no database'],
    ] as readonly (readonly [Uint8Array, string])[]) {
        const { restored, left } = sandbox(t.testdir({}));
        const error = (await restored(bytes)) as ScanwireError | undefined;
        t.equal(error?.code, 'INVALID_INPUT', message);
        t.ok(error?.message.includes(message), `${message}: ${error?.message}`);
        t.same(left(), [], message);
    }
});

t.test('refuses a folder that cannot be made, by what is in its place', async (t) => {
    const root = t.testdir({ file: '', empty: {} });
    symlinkSync('empty', join(root, 'link'));
    symlinkSync('nowhere', join(root, 'dangling'));
    writeFileSync(join(root, 'backup'), whole);
    for (const [name, message] of [
        ['file', /file is a file: name a folder/],
        ['link', /link is a link: name the folder that it leads to/],
        ['dangling', /dangling is a link/],
        ['file/below', /is a file/],
    ] as const) {
        const restoring = restore(dataFolder(join(root, name)), join(root, 'backup'));
        await t.rejects(restoring, { code: 'MISCONFIGURED', field: 'data', message });
    }
    t.same(readdirSync(root).sort(), ['backup', 'dangling', 'empty', 'file', 'link']);
    await restore(dataFolder(join(root, 'new/deep/data')), join(root, 'backup'));
    t.ok(existsSync(join(root, 'new/deep/data/key-ring.json')));
    await restore(dataFolder(join(root, 'empty')), join(root, 'backup'));
    t.ok(existsSync(join(root, 'empty/key-ring.json')));
});

/** One change of an archive: at a block, a field of it that may be a header's, and what is written there. */
const change = fc.record({
    block: fc.nat(200),
    at: fc.oneof(fc.constantFrom(0, 1, 100, 124, 130, 148, 156, 157, 257, 345), fc.nat(BLOCK - 1)),
    value: fc.oneof(
        fc.constantFrom(
            '../../x',
            '/tmp/x',
            '..',
            '/',
            '\0',
            '5',
            '2',
            '1',
            '77777777777',
            '99999999999',
            '\x80',
            '00000000000',
            'base',
            '/base/1',
        ),
        fc.string({ maxLength: 12 }),
    ),
    summed: fc.boolean(),
});
const cut = fc.option(fc.nat(whole.length), { nil: undefined, freq: 4 });
const mutation = fc.record({
    outer: fc.array(change, { maxLength: 3 }),
    inner: fc.array(change, { maxLength: 3 }),
    cut,
    packed: fc.boolean(),
});
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

function changed(archive: Buffer, changes: readonly Change[]): Buffer {
    const copy = Buffer.from(archive);
    for (const { block, at, value, summed: isSummed } of changes) {
        const start = (block % (copy.length / BLOCK)) * BLOCK;
        const part = copy.subarray(start, start + BLOCK);
        part.write(value, at, 'latin1');
        if (isSummed) {
            summed(part);
        }
    }

    return copy;
}

t.test('makes nothing but a backup of a true one that was changed anywhere', async (t) => {
    const root = t.testdir({});
    const { restored, left, target } = sandbox(root);
    let [refused, kept] = [0, 0];
    const property = fc.asyncProperty(mutation, async ({ outer, inner, cut: length, packed }) => {
        const tar = changed(backupOf(changed(tarOf(DATABASE), inner)), outer).subarray(0, length);
        const error = await restored(packed ? gzipSync(tar) : tar);
        const names = left();
        rmSync(target, { recursive: true, force: true });
        if (error === undefined) {
            kept += 1;
            const strange = names.filter(
                (name) => !/^a\/b\/data(\/(key-ring\.json|license(\/[a-z.-]+)?|database(\/[\w./-]+)?))?$/.test(name),
            );
            return strange.length === 0;
        }

        refused += 1;
        return error instanceof ScanwireError && error.code === 'INVALID_INPUT' && names.length === 0;
    });
    await fc.assert(property, { numRuns: 1_500, seed: 20_261_127 });
    t.ok(refused > 500 && kept > 100, `${refused} were refused, ${kept} were not`);
    t.equal(existsSync('/tmp/x') && lstatSync('/tmp/x').isFile(), false);
});
