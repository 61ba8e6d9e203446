import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import t from 'tap';
import { coverage, filesThatRun } from './coverage.ts';

const FOLDERS = ['lib', 'plugins', 'adapters', 'cli'];
const MISSING = 'plugins/rest-api-v2/openapi.ts';

/** A report in which a line of each file ran so often. */
function report(files: readonly (readonly [path: string, count: number])[]): string {
    const path = join(mkdtempSync(join(tmpdir(), 'scanwire-report-')), 'report.json');
    const statementMap = { 0: { start: { line: 7 } } };
    writeFileSync(
        path,
        JSON.stringify(Object.fromEntries(files.map(([file, count]) => [resolve(file), { statementMap, s: { 0: count } }]))),
    );
    return path;
}

t.test('takes no file for well that no test has loaded, nor a folder of which nothing is told', (t) => {
    const all = FOLDERS.flatMap(filesThatRun).map((path) => [path, 1] as const);
    t.ok(all.length > 200);
    t.notOk(
        all.some(([path]) => path === 'lib/webhooks/events/new-event.ts'),
        'it has types alone',
    );
    t.match(coverage(report(all)), { enough: true, text: /^ok - lib: 100.00 %/ });
    const lacking = coverage(report(all.filter(([path]) => path !== MISSING)));
    t.notOk(lacking.enough);
    t.match(
        lacking.text,
        `not ok - plugins: 100.00 % of ${filesThatRun('plugins').length - 1} lines, at least 99.8 %\n    ${MISSING}: not loaded\n`,
    );
    t.notOk(coverage(report([])).enough);
    const missed = coverage(report(all.map(([path, count]) => [path, path === MISSING ? 0 : count])));
    t.notOk(missed.enough);
    t.match(missed.text, `    ${MISSING}: 7\n`);
    t.end();
});
