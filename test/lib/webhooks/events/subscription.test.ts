import Joi from 'joi';
import t from 'tap';
import { eventKinds, isNoticeKind } from '../../../../lib/webhooks/events/event-kinds.ts';
import { checkSubscription, compileSubscription, explainSubscription, wantsKind } from '../../../../lib/webhooks/events/subscription.ts';

const kind = (name: string) => ({
    name,
    schema: Joi.object({ severity: Joi.string(), [`only_${name.replace(/\W/g, '_')}`]: Joi.string() }),
});
const table = eventKinds(['scan.started', 'scan.finished'].map(kind));

t.test('every kind but those of notices when none is named, and those that are named', (t) => {
    const cases: readonly [readonly string[] | null, string, boolean][] = [
        [null, 'scan.started', true],
        [null, 'exporter_failing', false],
        [['*'], 'scan.started', true],
        [['*'], 'exporter_failing', false],
        [['exporter_*'], 'exporter_failing', false],
        [['exporter_failing'], 'exporter_failing', true],
        [['exporter_failing'], 'exporter_stopped', false],
        [['scan.*'], 'scan.finished', true],
        [['scan.*'], 'scanned', false],
        [['scan.started', 'idr_*'], 'idr_investigation_created', true],
        [['scan'], 'scan.started', false],
        [[], 'scan.started', false],
    ];
    for (const [kinds, name, expected] of cases) {
        t.equal(wantsKind(kinds, name), expected, `${JSON.stringify(kinds)} ${name}`);
    }
    t.ok(isNoticeKind('exporter_recovered'));
    t.notOk(isNoticeKind('idr_investigation_created'));
    t.end();
});

t.test('is refused when it could never have anything', (t) => {
    const check = (kinds: unknown, filter: unknown = null) => checkSubscription({ kinds, filter }, table);
    t.strictSame(check(null), { kinds: null, filter: null });
    t.strictSame(check(['scan.*', 'exporter_failing']).kinds, ['scan.*', 'exporter_failing']);
    const cases: readonly [unknown, string, RegExp][] = [
        ['scan.*', 'kinds', /^Kinds must be a list of 1 to 100/],
        [[], 'kinds', /list/],
        [['scan.*', 7], 'kinds[1]', /must be the name of an event kind, or its beginning and \*/],
        [['sc*n'], 'kinds[0]', /beginning and \*/],
        [['scan.paused'], 'kinds[0]', /fits no event kind: there are idr_investigation_created, exporter_failing, .*, scan\.started/],
        [['scan_*'], 'kinds[0]', /fits no event kind/],
        [['exporter_*'], 'kinds[0]', /named in full/],
        [['test'], 'kinds[0]', /fits no event kind/],
        [['scan.*', 'scan.*'], 'kinds[1]', /there already/],
    ];
    for (const [kinds, field, message] of cases) {
        t.throws(() => check(kinds), { code: 'INVALID_INPUT', field, message });
    }

    const only = { path: 'only_scan_started', op: 'exists' };
    t.doesNotThrow(() => check(null, only));
    t.doesNotThrow(() => check(['scan.*'], only));
    t.throws(() => check(['scan.finished'], only), { field: 'filter.path', message: /\(scan\.finished\) has only_scan_started/ });
    t.throws(() => check(null, { path: 'failingSince', op: 'exists' }), { code: 'INVALID_INPUT', field: 'filter.path' });
    t.doesNotThrow(() => check(['exporter_failing'], { path: 'failingSince', op: 'exists' }));
    t.end();
});

t.test('asks the filter of kinds that are wanted only, and reads no body without need', (t) => {
    const unread = {
        kind: 'exporter_failing',
        get body(): unknown {
            throw new Error('read');
        },
    };
    const filtered = checkSubscription({ kinds: null, filter: { path: 'severity', op: '=', value: 'high' } }, table);
    const wants = compileSubscription(filtered);
    t.equal(wants(unread), false);
    t.equal(compileSubscription({ kinds: null, filter: null })({ ...{}, kind: 'scan.started', body: undefined }), true);
    t.equal(wants({ kind: 'scan.started', body: { severity: 'high' } }), true);
    t.equal(wants({ kind: 'scan.started', body: { severity: 'low' } }), false);
    t.strictSame(explainSubscription(filtered, unread), { wanted: false, kindWanted: false, failed: [] });
    t.strictSame(explainSubscription(filtered, { kind: 'scan.started', body: { severity: 'high' } }), {
        wanted: true,
        kindWanted: true,
        failed: [],
    });
    t.match(explainSubscription(filtered, { kind: 'scan.started', body: {} }), {
        wanted: false,
        kindWanted: true,
        failed: [{ field: 'filter', condition: 'severity = "high"', holds: false, found: 0 }],
    });
    t.end();
});
