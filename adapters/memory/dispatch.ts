import type { Dispatched, DispatchOptions } from '../../lib/webhooks/store.ts';
import type { DeliveryRow, ExporterRow, WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.dispatch` says. Exporters take turns, so that under a small limit the longest backlog does not take it all. */
export function dispatch(state: WebhookState, options: DispatchOptions): readonly Dispatched[] {
    const ranked = [...groupByExporter(state)].flatMap(([exporter, rows]) => {
        return pickWithinWindow(exporter, rows, options).map((row, rank) => ({ row, rank, collector: exporter.collector }));
    });
    const order = (a: (typeof ranked)[number], b: (typeof ranked)[number]): number => {
        return Number(a.row.priority > 0) - Number(b.row.priority > 0) || a.rank - b.rank || byPriorityAndAge(a.row, b.row);
    };

    return ranked
        .sort(order)
        .slice(0, options.limit)
        .map(({ row, collector }) => {
            row.state = 'queued';
            row.queuedAt = options.now;
            return { deliveryId: row.id, collector, attempt: row.attempts + 1 };
        });
}

function groupByExporter(state: WebhookState): Map<ExporterRow, DeliveryRow[]> {
    const groups = new Map<ExporterRow, DeliveryRow[]>();
    for (const row of state.unfinished) {
        const exporter = state.exporters.get(row.exporterId);
        if (exporter !== undefined) {
            const rows = groups.get(exporter) ?? [];
            groups.set(exporter, rows);
            rows.push(row);
        }
    }
    return groups;
}

function pickWithinWindow(exporter: ExporterRow, rows: readonly DeliveryRow[], options: DispatchOptions): DeliveryRow[] {
    const due = rows.filter((row) => row.state === 'pending' && row.dueAt <= options.now).sort(byPriorityAndAge);
    const inFlight = rows.filter((row) => row.state !== 'pending').length;
    const room = options.window - inFlight;
    const ordinaryRoom = ordinaryWindow(exporter, options) - inFlight;

    return due.filter((row, rank) => rank < (row.priority === 0 ? room : ordinaryRoom));
}

/** How many deliveries of the exporter, single-attempt ones aside, may be under way. */
function ordinaryWindow(exporter: ExporterRow, { window, breakerAfter, now }: DispatchOptions): number {
    if (exporter.state !== 'running') {
        return 0;
    }
    if (exporter.consecutiveFailures < breakerAfter) {
        return window;
    }
    return exporter.probeAt === null || exporter.probeAt <= now ? 1 : 0;
}

function byPriorityAndAge(a: DeliveryRow, b: DeliveryRow): number {
    return a.priority - b.priority || a.dueAt.getTime() - b.dueAt.getTime() || a.seq - b.seq;
}
