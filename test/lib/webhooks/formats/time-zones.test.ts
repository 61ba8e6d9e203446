/* The same bytes wherever a process runs: each zone is another process, since a process reads its zone once. */
import { execFileSync } from 'node:child_process';
import t from 'tap';

/** When the event was accepted. */
const ACCEPTED = '2026-11-21T09:30:01.234Z';

/** Times as they are written, and what they are in UTC; null for what is no time. */
const TIMES: Readonly<Record<string, string | null>> = {
    '2026-07-01 10:00': '2026-07-01T10:00:00.000Z',
    '2026-07-01T10:00:00': '2026-07-01T10:00:00.000Z',
    '2026-07-01T10:00:00.123456': '2026-07-01T10:00:00.123Z',
    '2026-07-01': '2026-07-01T00:00:00.000Z',
    'July 1, 2026': '2026-07-01T00:00:00.000Z',
    '1 Jul 2026 10:00 PM': '2026-07-01T22:00:00.000Z',
    '1 Jul 2026 10:00 (PST)': '2026-07-01T10:00:00.000Z',
    '2026-07-01T10:00:00Z': '2026-07-01T10:00:00.000Z',
    '2026-07-01 10:00 +0200': '2026-07-01T08:00:00.000Z',
    '2026-07-01T10:00:00-05:00': '2026-07-01T15:00:00.000Z',
    'Wed, 01 Jul 2026 10:00:00 GMT': '2026-07-01T10:00:00.000Z',
    'Wed Jul 01 2026 10:00:00 GMT+0200 (CEST)': '2026-07-01T08:00:00.000Z',
    'Wed Jul  1 10:00:00 EDT 2026': '2026-07-01T14:00:00.000Z',
    'last week': null,
};

/** Prints what formats make of each time. */
const READER = `
import { eventOf, made } from ${JSON.stringify(new URL('./events.js', import.meta.url).href)};

const [, times] = process.argv;
const format = '%Y-%m-%dT%H:%M:%S.%LZ';
const template = { one: "{{ body.timestamp | date: '" + format + "' }}", list: "{{ body.list | date: '" + format + "' }}" };
const read = (timestamp) => {
    const event = eventOf({ timestamp, list: [timestamp] }, 'own');
    const { one, list } = JSON.parse(made('template', event, template).body.toString());
    return [JSON.parse(made('cloudevents', event).body.toString()).time, one, list];
};
process.stdout.write(JSON.stringify(JSON.parse(times).map(read)));
`;

for (const zone of ['UTC', 'America/New_York', 'Asia/Kathmandu']) {
    t.test(`reads a time without a zone in UTC, in a process of ${zone}`, (t) => {
        const args = ['--input-type=module', '--eval', READER, JSON.stringify(Object.keys(TIMES))];
        const out = execFileSync(process.execPath, args, { env: { ...process.env, TZ: zone }, encoding: 'utf8' });
        const read: readonly (readonly string[])[] = JSON.parse(out);
        for (const [index, [text, time]] of Object.entries(TIMES).entries()) {
            t.strictSame(read[index], time === null ? [ACCEPTED, text, text] : [time, time, time], text);
        }
        t.end();
    });
}
