import t from 'tap';
import { testFiles } from './named-tests.ts';

const OWN = 'build/test/support/named-tests.test.js';

t.test('finds the tests that are named, with the options beside them', (t) => {
    for (const name of ['test/support/named-tests.test.ts', './test/support/named-tests.test.ts', OWN]) {
        t.strictSame(testFiles([name]), { compiled: [OWN], bails: false, options: [] }, name);
    }
    const ofFolder = ['coverage', 'named-tests', 'tap-output', 'temporary-folders'].map((name) => OWN.replace('named-tests', name));
    t.strictSame(testFiles(['--jobs', '1', 'test/support', '--bail']), { compiled: ofFolder, bails: true, options: ['--jobs', '1'] });
    t.end();
});

t.test('takes all tests where options stand alone', (t) => {
    const { compiled } = testFiles([]);
    t.ok(compiled.length > 100 && compiled.includes(OWN));
    t.strictSame(testFiles(['--bail']), { compiled, bails: true, options: [] });
    t.strictSame(testFiles(['--jobs', '1']).compiled, compiled);
    t.end();
});

t.test('runs nothing where nothing is meant', (t) => {
    t.throws(() => testFiles(['test/support/nothing.test.ts', '--reporter=tap']), /--reporter/);
    t.throws(() => testFiles(['test/cli', 'test/screenshots']), /There is no test in test\/screenshots/);
    t.end();
});
