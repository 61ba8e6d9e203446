import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Campaign, leaks } from './campaign.ts';
import type { RecordedFault } from './faults.ts';
import type { Duplicate, Post } from './ledger.ts';
import { recordedFault } from './recorded-fault.ts';
import { report } from './report.ts';

const FAULT = recordedFault();

function campaignWith(duplicates: readonly Duplicate[]): Campaign {
    const lost = [
        { eventId: 'event', exporter: 'alpha', delivery: 'pending, never tried' },
        { eventId: 'event', exporter: 'beta', delivery: 'pending, never tried' },
    ];
    const verdict = {
        events: 20_000,
        posts: 60_100,
        leftOut: 0,
        lost,
        duplicates,
        longestDelay: 41_234,
        inFlight: new Map([[FAULT, 3]]),
        wrong: new Map(),
    };
    return { faults: [FAULT], verdict, failures: ['Lost: alpha'], folder: '/tmp/campaign' };
}

function duplicate(cause: RecordedFault | null): Duplicate {
    return { post: {} as Post, first: {} as Post, cause };
}

t.test('says in one line what came of a campaign, then what each fault led to, and what must not be', async (t) => {
    const lines = (await report(campaignWith([duplicate(FAULT), duplicate(FAULT)]))).split('\n');
    t.equal(lines[0], '20000 events, 1 faults, 1 lost, 2 duplicates (each with its cause), longest delay 41.2 s');
    t.ok(lines.some((line) => /^process killed +1 +3 +2$/.test(line)));
    t.ok(lines.includes('FAILED: Lost: alpha'));
    t.ok(lines.includes('Logs, journals and examples: /tmp/campaign'));
});

t.test('says how many have no cause', async (t) => {
    const [line] = (await report(campaignWith([duplicate(FAULT), duplicate(null)]))).split('\n');
    t.equal(line, '20000 events, 1 faults, 1 lost, 2 duplicates (1 without a cause), longest delay 41.2 s');
});

t.test('finds a secret in whatever was written, at any depth', (t) => {
    const folder = t.testdir();
    mkdirSync(join(folder, 'redis', 'deep'), { recursive: true });
    writeFileSync(join(folder, 'host.log'), 'all is well');
    writeFileSync(
        join(folder, 'redis', 'deep', 'dump.rdb'),
        Buffer.concat([Buffer.from([0, 255]), Buffer.from('a secret of one'), Buffer.from([1])]),
    );
    t.strictSame(leaks(folder, ['another', 'a secret of one']), [join(folder, 'redis', 'deep', 'dump.rdb')]);
    t.strictSame(leaks(folder, ['another']), []);
    t.end();
});
