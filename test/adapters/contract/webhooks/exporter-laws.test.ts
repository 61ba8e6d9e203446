import t from 'tap';
import { exporterLaws } from '../../../../adapters/contract/webhooks/exporter-laws.ts';
import { sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'returns an exporter as it was inserted': (exporters) => ({
        exporters: { insert: (exporter) => exporters.insert({ ...exporter, schedule: null }) },
    }),
    'answers null for an exporter that does not exist': (exporters) => ({
        exporters: { get: async (id) => (await exporters.get(id)) ?? sampleExporter() },
    }),
    'refuses a second exporter with the same id': (exporters) => ({
        exporters: { insert: (exporter) => exporters.insert(exporter).catch(() => {}) },
    }),
    'lists exporters oldest first': (exporters) => ({
        exporters: { list: async () => (await exporters.list()).toReversed() },
    }),
    'changes what a patch holds and nothing else': (exporters) => ({
        exporters: { update: (id, patch) => exporters.update(id, { collector: 'default', ...patch }) },
    }),
    'forgets failures when an exporter is started': (exporters) => ({
        exporters: {
            update: async (id, patch) => {
                const before = await exporters.get(id);
                const after = await exporters.update(id, patch);
                return { ...after, consecutiveFailures: before?.consecutiveFailures ?? 0 };
            },
        },
    }),
    'closes the breaker when an exporter is started': (exporters) => ({
        exporters: { update: (id, { state: _, ...patch }) => exporters.update(id, patch) },
    }),
    'refuses to change an exporter that does not exist': (exporters) => ({
        exporters: { update: (id, patch) => exporters.update(id, patch).catch(() => sampleExporter()) },
    }),
    'changes an exporter only while it has the expected type': (exporters) => ({
        exporters: { update: (id, { expectedType: _, ...patch }) => exporters.update(id, patch) },
    }),
    'removes an exporter once': (exporters) => ({
        exporters: { remove: async (id) => (await exporters.remove(id)) || true },
    }),
    'cancels the active deliveries of a removed exporter': (_, deliveries) => ({
        deliveries: {
            get: async (id) => {
                const delivery = await deliveries.get(id);
                return delivery?.state === 'cancelled' ? { ...delivery, state: 'pending', finishedAt: null } : delivery;
            },
        },
    }),
    'keeps the deliveries of a removed exporter readable': (_, deliveries) => ({
        deliveries: {
            list: async (query) => (await deliveries.list(query)).filter(({ state }) => state !== 'cancelled'),
        },
    }),
    'takes the claims on a removed exporter away': (_, deliveries) => ({
        deliveries: {
            attempts: async (id) => (await deliveries.attempts(id)).map((attempt) => ({ ...attempt, late: false })),
        },
    }),
    'leaves no active delivery behind when an exporter is removed while events arrive': (exporters, deliveries) => {
        let removed = '';
        return {
            exporters: {
                remove: async (id) => {
                    removed = id;
                    return await exporters.remove(id);
                },
            },
            deliveries: {
                list: async (query) => {
                    const listed = await deliveries.list(query);
                    return removed === '' ? listed : listed.map((delivery) => ({ ...delivery, state: 'pending' }));
                },
            },
        };
    },
    'changes a secret only while it is the expected one, so that none is lost': (exporters) => ({
        exporters: { update: (id, { expectedSecret: _, ...patch }) => exporters.update(id, patch) },
    }),
    'changes an exporter only while it has the expected headers, so that none goes elsewhere': (exporters) => ({
        exporters: { update: (id, { expectedHeaders: _, ...patch }) => exporters.update(id, patch) },
    }),
    'changes an exporter only while its format has the expected secret, so that none comes back': (exporters) => ({
        exporters: { update: (id, { expectedFormatSecret: _, ...patch }) => exporters.update(id, patch) },
    }),
    'changes an exporter only while it authenticates by what is expected, so that no credential is lost or goes elsewhere': (
        exporters,
    ) => ({
        exporters: { update: (id, { expectedAuthentication: _, ...patch }) => exporters.update(id, patch) },
    }),
    'changes a URL only while it is the expected one, so that none comes back': (exporters) => ({
        exporters: { update: (id, { expectedUrl: _, ...patch }) => exporters.update(id, patch) },
    }),
};

proveWebhookLaws(t, exporterLaws, MUTANTS);
