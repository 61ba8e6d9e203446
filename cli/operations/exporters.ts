import type { Exporter } from '../../lib/webhooks/exporter.ts';
import type { ExporterChanges, NewExporterSettings } from '../../lib/webhooks/exporter-settings.ts';
import type { ChangedExporter } from '../../lib/webhooks/exporters.ts';
import type { System } from '../system.ts';
import { type Operation, operation } from './operation.ts';
import { type ShownTest, shownTest } from './shown-attempt.ts';

export type TestedExporter = Exporter & { readonly test: ShownTest };
export type CreatedExporter = Exporter & { readonly secret: string; readonly test?: ShownTest };

export const createExporter: Operation<{ settings: NewExporterSettings; start?: boolean }, CreatedExporter> = operation({
    name: 'exporters.create',
    method: 'POST',
    path: '/exporters',
    creates: true,
    delivers: true,
    async run(system, { settings, start = false }) {
        const { exporter, secret } = await system.webhooks.exporters.create(settings);
        return start ? { ...(await started(system, exporter.id)), secret } : { ...exporter, secret };
    },
});

export const listExporters: Operation<object, readonly Exporter[]> = operation({
    name: 'exporters.list',
    method: 'GET',
    path: '/exporters',
    run: (system) => system.webhooks.exporters.list(),
});

export const showExporter: Operation<{ id: string }, Exporter> = operation({
    name: 'exporters.show',
    method: 'GET',
    path: '/exporters/{id}',
    run: (system, { id }) => system.webhooks.exporters.get(id),
});

export const updateExporter: Operation<{ id: string; changes: ExporterChanges; start?: boolean }, TestedExporter> = operation({
    name: 'exporters.update',
    method: 'PATCH',
    path: '/exporters/{id}',
    delivers: true,
    async run(system, { id, changes, start = false }) {
        const changed = await system.webhooks.exporters.update(id, changes);
        return start ? started(system, id) : tested(changed);
    },
});

export const startExporter: Operation<{ id: string }, TestedExporter> = operation({
    name: 'exporters.start',
    method: 'POST',
    path: '/exporters/{id}/start',
    delivers: true,
    run: (system, { id }) => started(system, id),
});

export const stopExporter: Operation<{ id: string }, TestedExporter> = operation({
    name: 'exporters.stop',
    method: 'POST',
    path: '/exporters/{id}/stop',
    delivers: true,
    run: async (system, { id }) => tested(await system.webhooks.exporters.stop(id)),
});

export const testExporter: Operation<{ id: string }, ShownTest> = operation({
    name: 'exporters.test',
    method: 'POST',
    path: '/exporters/{id}/test',
    delivers: true,
    run: async (system, { id }) => shownTest(await system.webhooks.exporters.test(id)),
});

export const removeExporter: Operation<{ id: string }, { readonly id: string; readonly removed: true }> = operation({
    name: 'exporters.remove',
    method: 'DELETE',
    path: '/exporters/{id}',
    async run(system, { id }) {
        await system.webhooks.exporters.remove(id);
        return { id, removed: true };
    },
});

async function started(system: System, id: string): Promise<TestedExporter> {
    return tested(await system.webhooks.exporters.start(id));
}

function tested({ exporter, test }: ChangedExporter): TestedExporter {
    return { ...exporter, test: shownTest(test) };
}
