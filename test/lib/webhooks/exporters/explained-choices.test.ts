import { randomUUID } from 'node:crypto';
import Joi from 'joi';
import t from 'tap';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import type { NewExporterSettings } from '../../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterPatch } from '../../../../lib/webhooks/exporters/exporter-patch.ts';
import type { ExplainOptions } from '../../../../lib/webhooks/exporters/exporter-preview.ts';
import { recordingProcess, ring } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

const KIND = 'idr_investigation_created';
const EVENT = { kind: KIND, body: { ...INVESTIGATION, title: 'Odd sign-in' } };

/** Of another exporter unless told otherwise. */
const notice = (exporterId: string = randomUUID(), about: object = {}) => ({
    kind: 'exporter_failing',
    body: { timestamp: '2026-11-23T10:00:05.000Z', exporterId, exporterName: 'siem', collector: 'default', failures: 10, ...about },
});

interface Case {
    readonly settings?: Omit<NewExporterSettings, 'url'>;
    readonly state?: ExporterPatch;
    readonly options?: ExplainOptions;
    readonly event?: (id: string) => { readonly kind: string; readonly body: unknown };
    /** Null where it gets the event. */
    readonly reason: string | null;
}

const contains = { path: 'title', op: 'contains', value: 'sign-in' } as const;
const [watching, ofSiem] = [['exporter_failing'], { path: 'exporterName', op: '=', value: 'siem' } as const];

const CASES: Readonly<Record<string, Case>> = {
    'one that it chooses': { settings: { kinds: ['idr_*'], filter: contains }, reason: null },
    'one of its owner': { settings: { owner: 'one' }, options: { owner: 'one' }, reason: null },
    'one of another owner': { settings: { owner: 'one' }, options: { owner: 'two' }, reason: 'It gets events of the owner one only' },
    'one of the deployment': { settings: { owner: 'one' }, reason: 'It gets events of the owner one only' },
    'one of rules that its type does not have': {
        settings: { legacy: true },
        options: { rules: 'library' },
        reason: 'Its type investigation_legacy does not get investigations of the rules library',
    },
    'one of a kind that it did not name': { settings: { kinds: ['other'] }, reason: `Its kinds do not match ${KIND}` },
    'one that a condition does not hold for': {
        settings: { filter: { ...contains, value: 'log-out' } },
        reason: 'Its filter does not match: filter (title contains "log-out") does not hold for 1 value found',
    },
    'one that a condition under not holds for': {
        settings: { filter: { not: contains } },
        reason: 'Its filter does not match: filter.not (title contains "sign-in") holds, but should not, for 1 value found',
    },
    'one that fails both ways': {
        settings: { filter: { all: [{ not: contains }, { path: 'description', op: 'exists', value: true }] } },
        reason:
            'Its filter does not match: filter.all[0].not (title contains "sign-in") holds, but should not, for 1 value found, ' +
            'filter.all[1] (description exists true) does not hold for 0 values found',
    },
    'one while it is stopped': { state: { state: 'stopped' }, reason: 'It is stopped' },
    'one while an outcome has it stopped': {
        state: { state: 'stopped', stopReason: 'It is gone' },
        reason: 'It was stopped by an outcome: what it would get is held until it is replayed',
    },
    'one while it is paused': { state: { pausedAt: new Date() }, reason: null },
    'a notice that it named': { settings: { kinds: watching, filter: ofSiem }, event: () => notice(), reason: null },
    'a notice that it did not name': { event: () => notice(), reason: 'Its kinds do not match exporter_failing' },
    'a notice that its filter does not want': {
        settings: { kinds: watching, filter: { ...ofSiem, value: 'chat' } },
        event: () => notice(),
        reason: 'Its filter does not match: filter (exporterName = "chat") does not hold for 1 value found',
    },
    'a notice about itself': { settings: { kinds: watching }, event: (id) => notice(id), reason: 'It gets no events about itself' },
    'a notice about an exporter of its owner': {
        settings: { kinds: watching, owner: 'one' },
        event: () => notice(undefined, { owner: 'one' }),
        reason: null,
    },
    'a notice about an exporter of another owner': {
        settings: { kinds: watching, owner: 'one' },
        event: () => notice(undefined, { owner: 'two' }),
        reason: 'It gets events of the owner one only',
    },
    'a notice to one of a type that does not get all investigations': {
        settings: { legacy: true, kinds: watching },
        event: () => notice(),
        options: { rules: 'library' },
        reason: null,
    },
};

for (const [name, { settings = {}, state = {}, event = () => EVENT, options, reason }] of Object.entries(CASES)) {
    t.test(`explains whether an exporter gets ${name}`, async (t) => {
        const stores = memoryWebhooks();
        const { exporters } = recordingProcess(t, stores, { kinds: [{ name: 'other', schema: Joi.object() }] });
        const { exporter } = await exporters.create({ url: 'https://receiver.example/', ...settings });
        await stores.exporters.update(exporter.id, { state: 'running', ...state });
        const { kind, body } = event(exporter.id);
        const wanted = reason === null ? { wanted: true } : { wanted: false, reason };
        t.strictSame(await exporters.explain(exporter.id, kind, body, options), wanted);
    });
}

t.test('previews a test in the format of its exporter, whatever it chooses', async (t) => {
    const { exporters } = recordingProcess(t, memoryWebhooks());
    const { exporter } = await exporters.create({ url: 'https://receiver.example/', kinds: watching, format: 'splunk-hec' });
    const body = { timestamp: '2026-11-23T10:00:05.000Z', webhook_id: exporter.id, webhook_name: 'siem' };
    const preview = await exporters.preview(exporter.id, 'test', body);
    t.match(JSON.parse(preview.body), { event: body, fields: { event_kind: 'test' } });
    t.equal(new Map(preview.headers).get('X-Vendor-Event'), 'test');
    await t.rejects(exporters.preview(exporter.id, 'test', {}), { code: 'INVALID_INPUT', field: 'timestamp' });

    const { body: own } = await exporters.preview(exporter.id, 'test');
    t.match(JSON.parse(own), { event: { timestamp: String, webhook_id: exporter.id, webhook_name: '' } }, 'as it would be sent');
    await t.rejects(exporters.preview(exporter.id, 'idr_investigation_created'), { code: 'INVALID_INPUT' }, 'no other kind has one');
});

t.test('previews a notice, and a draft of who gets it', async (t) => {
    const { exporters, publish } = recordingProcess(t, memoryWebhooks());
    const { exporter } = await exporters.create({ url: 'https://receiver.example/', kinds: watching });
    const { kind, body } = notice(exporter.id);
    t.strictSame(JSON.parse((await exporters.preview(exporter.id, kind, body)).body), body);
    const { id } = exporter;
    t.match(await exporters.previewDraft({ id }, kind, body), { wanted: false, reason: 'It gets no events about itself' });
    t.match(await exporters.previewDraft({ kinds: watching }, kind, body), { wanted: true });
    await t.rejects(exporters.explain(id, kind, { ...body, failures: 'many' }), { code: 'INVALID_INPUT', field: 'failures' });
    const unknown = { code: 'INVALID_INPUT', field: 'kind', message: /known: .*exporter_recovered/ };
    await t.rejects(exporters.explain(id, 'test', {}), unknown, 'a test is sent to the one that it tests, and chosen by nobody');
    await t.rejects(exporters.previewDraft({ kinds: watching }, 'test', {}), unknown);
    await t.rejects(publish(kind, body), { code: 'INVALID_INPUT', field: 'kind', message: /^((?!exporter_).)*$/ });
});

t.test('seals the draft of a new exporter for no exporter of its own, however often it is asked about', async (t) => {
    const sealedFor = new Set<string>();
    const seal: typeof ring.seal = (secret, context) => {
        sealedFor.add(context);
        return ring.seal(secret, context);
    };
    const { exporters } = recordingProcess(t, memoryWebhooks(), { keyRing: { ...ring, seal } });
    const draft = {
        secret: 'scw_secret',
        headers: [['X-Token', 'hidden']],
        format: 'pagerduty',
        formatSecret: 'R0UT1NG'.padEnd(32, 'x'),
    } as const;
    await exporters.previewDraft(draft, KIND, EVENT.body);
    const once = [...sealedFor];
    t.ok(once.length >= 3);
    t.match(await exporters.previewDraft(draft, KIND, EVENT.body), { wanted: true, body: /Odd sign-in/ });
    t.same([...sealedFor], once, 'what a ring remembers of what it has sealed stays as it is');
});
