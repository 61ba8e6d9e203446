import { createReadStream } from 'node:fs';
import t from 'tap';
import { type RecordTotals, readRecords } from '../../../lib/records/index.ts';
import { fixture } from '../../support/served.ts';

async function totals(name: string): Promise<RecordTotals> {
    const lines = readRecords(createReadStream(fixture(`records/${name}`)));
    for await (const _ of lines) {
        // they are counted
    }

    return lines.totals;
}

t.test('holds what its README says', async (t) => {
    t.match(await totals('https.jsonl'), { good: 3, bad: 0 });
    t.match(await totals('servers.jsonl'), { good: 42, bad: 0 });
    t.match(await totals('old-style.jsonl'), { good: 3, bad: 9 });
});
