import { lstatSync, readFileSync } from 'node:fs';
import t from 'tap';
import { writeOutput } from '../../cli/records/write-output.ts';

t.test('follows no link that somebody put where the unfinished file goes', async (t) => {
    const folder = t.testdir({ other: 'dear diary', [`out.${process.pid}.partial`]: t.fixture('symlink', 'other') });
    await writeOutput([Buffer.from('records')], `${folder}/out`);
    t.equal(readFileSync(`${folder}/other`, 'utf8'), 'dear diary');
    t.equal(readFileSync(`${folder}/out`, 'utf8'), 'records');
    t.ok(lstatSync(`${folder}/out`).isFile());
});
