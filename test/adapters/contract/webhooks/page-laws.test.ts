import t from 'tap';
import { pageLaws, summaryLaws } from '../../../../adapters/contract/webhooks/page-laws.ts';
import type { ExporterPageRequest, PagedRow } from '../../../../lib/webhooks/exporters/exporter-lists.ts';
import { type Mutant, proveWebhookLaws } from './mutants.ts';

/** Stores that answer with something else. */
function answering(change: (rows: readonly PagedRow[], request: ExporterPageRequest) => readonly PagedRow[]): Mutant {
    return (exporters) => ({
        exporters: { page: async (request) => change((await exporters.page?.(request)) ?? [], request) },
    });
}

proveWebhookLaws(t, pageLaws, {
    'lists some exporters behind another one, oldest first, with how each fares': (exporters) => ({
        exporters: { page: async ({ after: _, ...request }) => (await exporters.page?.(request)) ?? [] },
    }),
    // A position is looked for among all.
    'lists the exporters of an owner, and says of no other where they are': (exporters) => ({
        exporters: {
            page: async ({ owner, limit, ...request }) =>
                ((await exporters.page?.({ ...request, limit: 100 })) ?? [])
                    .filter(({ exporter }) => owner === undefined || exporter.owner === owner)
                    .slice(0, limit),
        },
    }),
    'lists in full the exporters of an owner, and no other': (exporters) => ({
        exporters: { list: ({ owner: _, ...options } = {}) => exporters.list(options) },
    }),
    'counts what became of the deliveries to each exporter, in slices of time': answering((rows) =>
        rows.map((row) => ({ ...row, slices: rows[0]?.slices ?? [] })),
    ),
    'counts nothing for an exporter to which nothing was sent': answering((rows) =>
        rows.map((row) => ({ ...row, slices: row.slices.filter(({ deliveries }) => deliveries > 0) })),
    ),
});

proveWebhookLaws(t, summaryLaws, {
    'tells names and states of exporters, oldest first': (exporters) => ({
        exporters: { summaries: async ({ owner: _, ...query }) => (await exporters.summaries?.(query)) ?? [] },
    }),
});
