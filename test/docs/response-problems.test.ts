import { readFileSync } from 'node:fs';
import t from 'tap';
import { RESPONSE_PROBLEMS } from '../../lib/records/index.ts';

t.test('explains every problem of a response', (t) => {
    const page = readFileSync('docs/records.md', 'utf8');
    const [, table = ''] = /^\| code .*?$(.*?)^$/ms.exec(page) ?? [];
    const codes = Array.from(table.matchAll(/^\| `(\w+)`/gm), ([, code]) => code);
    t.same(codes, RESPONSE_PROBLEMS);
    t.end();
});
