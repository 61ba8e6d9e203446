import fc from 'fast-check';
import t from 'tap';
import { isStorableTime } from '../../lib/schema-validation.ts';
import { timestampFormat } from '../../lib/timestamp.ts';

t.test('writes whole seconds and a numeric offset', async (t) => {
    const instant = new Date('2026-11-21T09:30:00.999Z');

    t.equal(timestampFormat()(instant), '2026-11-21T09:30:00+00:00');
    t.equal(timestampFormat('UTC')(instant), '2026-11-21T09:30:00+00:00');
    t.equal(timestampFormat('Europe/Berlin')(instant), '2026-11-21T10:30:00+01:00');
    t.equal(timestampFormat('America/St_Johns')(instant), '2026-11-21T06:00:00-03:30');
    t.equal(timestampFormat('Asia/Kathmandu')(instant), '2026-11-21T15:15:00+05:45');
    t.equal(timestampFormat('Etc/GMT+12')(instant), '2026-11-20T21:30:00-12:00');
});

t.test('follows daylight saving time to the second', async (t) => {
    const format = timestampFormat('Europe/Berlin');

    t.equal(format(new Date('2026-03-29T00:59:59Z')), '2026-03-29T01:59:59+01:00');
    t.equal(format(new Date('2026-03-29T01:00:00Z')), '2026-03-29T03:00:00+02:00');
    t.equal(format(new Date('2026-10-25T00:59:59Z')), '2026-10-25T02:59:59+02:00');
    t.equal(format(new Date('2026-10-25T01:00:00Z')), '2026-10-25T02:00:00+01:00');
});

t.test('writes the first and the last instant of all', async (t) => {
    t.equal(timestampFormat()(new Date(8.64e15)), '+275760-09-13T00:00:00+00:00');
    t.equal(timestampFormat()(new Date(-8.64e15)), '-271821-04-20T00:00:00+00:00');
});

t.test('knows which instants every database keeps', async (t) => {
    for (const [time, isStorable] of [
        ['0001-01-01T00:00:00.000Z', true],
        ['9999-12-31T23:59:59.999Z', true],
        ['0000-12-31T23:59:59.999Z', false],
        ['+010000-01-01T00:00:00.000Z', false],
        ['-005000-01-01T00:00:00.000Z', false],
        ['', false],
    ] as const) {
        t.equal(isStorableTime(new Date(time)), isStorable, time);
    }
});

t.test('names the same instant in every time zone', async () => {
    const formats = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Monrovia', 'Pacific/Apia'].map(
        timestampFormat,
    );
    const instants = fc.date({ min: new Date('1800-01-01'), max: new Date('2100-01-01'), noInvalidDate: true });
    fc.assert(
        fc.property(instants, fc.constantFrom(...formats), (instant, format) => {
            return new Date(format(instant)).getTime() === Math.floor(instant.getTime() / 1000) * 1000;
        }),
    );
});

t.test('refuses an unknown time zone', async (t) => {
    t.throws(() => timestampFormat('Mars/Olympus'), { code: 'MISCONFIGURED', field: 'timeZone' });
});

t.test('is right for more quarters of an hour than it remembers', async (t) => {
    const format = timestampFormat('Europe/Berlin');
    const first = Date.parse('2026-01-01T00:00:00Z');
    const wrong: string[] = [];
    // Twice: what was forgotten is looked up again.
    for (const index of [...Array(11_000).keys(), ...Array(11_000).keys()]) {
        const instant = first + index * 900_000;
        const text = format(new Date(instant));
        if (Date.parse(text) !== instant) {
            wrong.push(text);
        }
    }

    t.strictSame(wrong, []);
});
