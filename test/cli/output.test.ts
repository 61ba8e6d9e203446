import t from 'tap';
import { aligned, relativeTime, table } from '../../cli/output/table.ts';
import { printable, printablePieces } from '../../lib/printable.ts';

t.test('says how long ago, or when', async (t) => {
    const now = new Date('2026-11-21T12:00:00Z');
    const cases: [string | null, string][] = [
        [null, 'never'],
        ['2026-11-21T12:00:00Z', 'now'],
        ['2026-11-21T11:59:58Z', '2 seconds ago'],
        ['2026-11-21T11:00:01Z', '59 minutes ago'],
        ['2026-11-21T14:00:00Z', 'in 2 hours'],
        ['2026-11-21T12:01:30Z', 'in 1 minute'],
        ['2026-11-20T11:00:00Z', 'yesterday'],
        ['2026-11-22T13:00:00Z', 'tomorrow'],
        ['2026-11-18T12:00:00Z', '3 days ago'],
        ['2026-10-12T12:00:00Z', 'last month'],
        ['2027-12-21T12:00:00Z', 'next year'],
        ['2126-11-21T12:00:00Z', 'in 100 years'],
    ];
    for (const [time, text] of cases) {
        t.equal(relativeTime(time, now), text);
    }
});

t.test('lets nothing through that a terminal would obey', async (t) => {
    t.equal(printable('a\u001b[31mb\u0007\u202Ec\n'), 'a\uFFFD[31mb\uFFFD\uFFFDc\uFFFD');
    t.equal(printable('häuser 家'), 'häuser 家');
});

t.test('aligns columns without lines, colours or trailing blanks', async (t) => {
    t.equal(
        await table(
            ['ID', 'NAME'],
            [
                ['1', 'one\u001b[2J'],
                ['1000', ''],
            ],
            'none',
        ),
        'ID    NAME\n1     one\uFFFD[2J\n1000',
    );
    t.equal(
        await table(
            ['NAME', 'ID'],
            [
                ['家の鍵…', '1'],
                ['mañana', '2'],
            ],
            'none',
        ),
        'NAME     ID\n家の鍵…  1\nmañana   2',
    );
    t.equal(await table(['ID'], [], 'none'), 'none');
    t.equal(
        await aligned([
            ['Id', '1'],
            ['Longer', '2'],
        ]),
        'Id      1\nLonger  2',
    );
});

t.test('shows a file that comes in pieces without signs that a terminal acts on', async (t) => {
    const bytes = Buffer.from('"\u001b[2Jzwölf"\r\nx\u009d\n');
    const pieces = async function* () {
        yield 'id\r\n\u202e';
        yield bytes.subarray(0, 8);
        yield bytes.subarray(8);
    };
    let shown = '';
    for await (const text of printablePieces(pieces())) {
        shown += text;
    }
    t.equal(shown, 'id\n\ufffd"\ufffd[2Jzwölf"\nx\ufffd\n');
});
