import t from 'tap';
import { csvLine } from '../../lib/csv.ts';

/*
 * What scans found is opened in spreadsheets, which run a cell that begins as a formula does. Where they split at semicolons or tabs, as in much of
 * Europe or as somebody chose, cells begin in the midst of ours.
 */

const line = (...values: readonly unknown[]): string => csvLine(values).slice(0, -2);

t.test('lets no cell begin with a formula, wherever a spreadsheet begins one', (t) => {
    for (const sign of ['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        const formula = `${sign}cmd()`;
        t.equal(line(1, formula), `1,'${formula}`);
        t.equal(line(1, `a;${formula};b`), `1,"a;'${formula};b"`);
        t.equal(line(1, `a\t${formula}`), `1,"a\t'${formula}"`);
        t.equal(
            line(1, `a\n${formula}\r\n${formula}`),
            `1,"a\n'${formula}\r\n'${formula}"`,
            'where quotes do not count, neither do they around a line',
        );
        t.equal(line(`;${formula}`), `";'${formula}"`);
        t.equal(line(`a;"${formula}"`), `"a;'""${formula}"""`, 'which a spreadsheet would take for its own quotes');
        t.equal(line({ x: `a;${formula}` }), `"{""x"":""a;'${formula}""}"`, 'in JSON too');
    }
    t.end();
});

t.test('leaves all else as it is, and texts with what may part cells in quotes', (t) => {
    t.equal(line('a;b', 'a\tb', 'a - b', 'a=b', -5, null, ''), '"a;b","a\tb",a - b,a=b,-5,,""');
    t.equal(line('a\r\nb\n\nc'), '"a\r\nb\n\nc"');
    t.equal(line('\t=x'), `"'\t'=x"`);
    t.end();
});

t.test('takes as long as a text is', (t) => {
    const text = ';"'.repeat(500_000) + '"'.repeat(500_000);
    t.equal(line(text).length, text.length + 2 + 1_000_000);
    t.end();
});
