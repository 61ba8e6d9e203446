import t from 'tap';
import { workspaceName } from '../../../lib/inventory/resources.ts';

t.test('takes names of 1 to 255 characters, trimmed', async (t) => {
    t.equal(workspaceName(' lab 🧪 '), 'lab 🧪');
    t.equal(workspaceName('w'.repeat(255)), 'w'.repeat(255));
});

t.test('refuses what is none, and what a terminal or a database would choke on', async (t) => {
    for (const name of ['', '  ', 'w'.repeat(256), 'a\nb', '\u001b[31m', 'a\0', '\ud800', ['a', 'b'], 7, null, undefined]) {
        t.throws(() => workspaceName(name), { code: 'INVALID_INPUT', field: 'workspace' }, JSON.stringify(name));
    }
});
