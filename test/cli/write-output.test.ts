import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { writeOutput } from '../../cli/output/write-output.ts';

t.test('follows no link that somebody put where the unfinished file goes', async (t) => {
    const folder = t.testdir({ other: 'dear diary', [`out.${process.pid}.partial`]: t.fixture('symlink', 'other') });
    await writeOutput([Buffer.from('records')], `${folder}/out`);
    t.equal(readFileSync(`${folder}/other`, 'utf8'), 'dear diary');
    t.equal(readFileSync(`${folder}/out`, 'utf8'), 'records');
    t.ok(lstatSync(`${folder}/out`).isFile());
});

t.test('replaces no file where it may not, also one that comes meanwhile, and leaves nothing behind', async (t) => {
    const folder = t.testdir({ there: 'dear diary' });
    const refusal = { code: 'CONFLICT', field: 'output', message: / exists already: name another file, or replace it with --force$/ };
    let isRead = false;
    const source = async function* () {
        isRead = true;
        yield 'hosts';
    };
    await t.rejects(writeOutput(source(), `${folder}/there`, { replaces: false }), refusal);
    t.equal(isRead, false, 'what cannot be written is not read');

    const meanwhile = async function* () {
        yield 'hosts';
        writeFileSync(`${folder}/soon`, 'dear diary');
    };
    await t.rejects(writeOutput(meanwhile(), `${folder}/soon`, { replaces: false }), refusal);
    await writeOutput(source(), `${folder}/new`, { replaces: false });
    t.same(
        readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`, 'utf8')]),
        [
            ['new', 'hosts'],
            ['soon', 'dear diary'],
            ['there', 'dear diary'],
        ],
    );
});

t.test('leaves what was there when the source fails half-way', async (t) => {
    const folder = t.testdir({ there: 'dear diary' });
    const source = async function* () {
        yield 'hosts';
        throw new Error('The server broke off');
    };
    for (const name of ['there', 'new']) {
        await t.rejects(writeOutput(source(), `${folder}/${name}`), { message: 'The server broke off' });
    }
    t.same(readdirSync(folder), ['there']);
    t.equal(readFileSync(`${folder}/there`, 'utf8'), 'dear diary');
});
