import {
    BACKLOG_AGES,
    type Backlog,
    backlogOf,
    breakerOf,
    type ExporterHealth,
    type Overview,
    overviewOf,
} from '../../../lib/webhooks/exporters/exporter-health.ts';
import { type ExporterPageRequest, type PagedRow, summaryOf } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import type { ExporterStore } from '../../../lib/webhooks/exporters/exporter-store.ts';
import { patchRefusal, storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { sliceOf } from './delivery-lists.ts';
import { end, unendedOf } from './delivery-transitions.ts';
import { releaseOrder } from './order-keys.ts';
import {
    asExporter,
    CLOSED_BREAKER,
    type DeliveryRow,
    type ExporterRow,
    isSelective,
    later,
    resubscribe,
    takesEvents,
    type WebhookState,
} from './webhook-state.ts';

/** Exporters of the state. */
export function exporterStore(state: WebhookState): ExporterStore {
    return {
        async insert(exporter) {
            if (state.exporters.has(exporter.id)) {
                throw storeRefusals.exporterExists();
            }
            const row = {
                ...structuredClone(exporter),
                ...CLOSED_BREAKER,
                generation: 0,
                answersSlowly: true,
                ratePaidUntil: null,
                turn: 0,
                lastOutcome: null,
                unwell: false,
            };
            state.exporters.set(exporter.id, row);
            resubscribe(state, row);
        },

        async get(id) {
            const row = state.exporters.get(id);
            return row === undefined ? null : asExporter(row);
        },

        async list({ owner } = {}) {
            return byAge(state, owner).map(asExporter);
        },

        async subscribers() {
            const rows = byAge(state).filter((row) => takesEvents(row) && isSelective(row));
            return { revision: state.revision, at: state.clock(), exporters: rows.map(asExporter) };
        },

        ...noticesIn(state),

        async health(id) {
            const row = state.exporters.get(id);
            return row === undefined ? null : healthOf(state, row);
        },

        async summaries({ ids, owner }) {
            const rows = byAge(state, owner).filter((row) => ids?.includes(row.id) !== false);
            return structuredClone(rows.map(summaryOf));
        },

        page: async (request) => pageOf(state, request),
        overview: async (limit) => countedIn(state, limit),

        async update(id, patch) {
            const row = state.exporters.get(id);
            if (row === undefined) {
                throw storeRefusals.unknownExporter();
            }
            const refusal = patchRefusal(row, patch);
            if (refusal !== null) {
                throw refusal;
            }
            if (patch.owner !== undefined && patch.owner !== row.owner && isKeptOf(state, id)) {
                throw storeRefusals.ownerStays();
            }

            const before = { ...row };
            // What begins with `expected` is a condition.
            const changes = Object.fromEntries(
                Object.entries(patch).filter(([name, value]) => value !== undefined && !name.startsWith('expected')),
            );
            Object.assign(row, structuredClone(changes), { updatedAt: state.clock(), generation: row.generation + 1 });
            // The time for which it was paused is none for which it failed.
            if (before.pausedAt !== null && row.pausedAt === null && row.failingSince !== null) {
                const since = Math.max(before.pausedAt.getTime(), row.failingSince.getTime());
                row.failingSince = later(row.failingSince, state.clock().getTime() - since);
            }
            if (patch.state === 'running') {
                Object.assign(row, { consecutiveFailures: 0, ...CLOSED_BREAKER });
            }
            releaseOrder(state, row);
            resubscribe(state, before, row);
            return asExporter(row);
        },

        async remove(id) {
            const at = state.clock();
            const exporter = state.exporters.get(id);
            if (exporter === undefined) {
                return false;
            }

            state.exporters.delete(id);
            resubscribe(state, exporter);
            releaseOrder(state, { ...exporter, ordered: false });
            for (const row of unendedOf(state, (row) => row.exporterId === id)) {
                row.collector = exporter.collector;
                end(state, row, 'cancelled', at);
            }
            return true;
        },
    };
}

/** Whether anything is kept that it was sent, other than a `test`. */
function isKeptOf({ deliveries, replays }: WebhookState, id: string): boolean {
    const sent = [...deliveries.values()].some(({ exporterId, priority }) => exporterId === id && priority > 0);
    return sent || [...replays.values()].some(({ replay }) => replay.exporterId === id);
}

/** What became of exporters, until it is forgotten. */
function noticesIn(state: WebhookState): Required<Pick<ExporterStore, 'notices' | 'forgetNotices'>> {
    return {
        notices: async (limit, after = 0) => structuredClone(state.notices.filter(({ position }) => position > after).slice(0, limit)),

        async forgetNotices(ids) {
            const removed = state.notices.filter(({ id }) => ids.includes(id));
            state.notices = state.notices.filter((one) => !removed.includes(one));
            return removed.map(({ id }) => id);
        },
    };
}

/** Oldest first; of one owner only, where that is named. */
function byAge({ exporters }: WebhookState, owner?: string): readonly ExporterRow[] {
    const rows = [...exporters.values()].filter((row) => (owner ?? row.owner) === row.owner);
    return rows.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
}

function pageOf(state: WebhookState, { after, limit, owner, bounds, max }: ExporterPageRequest): readonly PagedRow[] {
    const all = byAge(state, owner);
    const first = all.findIndex(({ id }) => id === after) + 1;
    return all.slice(first, first + limit).map((row) => ({
        exporter: asExporter(row),
        health: healthOf(state, row),
        slices: bounds.slice(1).map((until, index) => {
            const { latency: _, ...tally } = sliceOf(state, bounds[index] as Date, until, { exporterId: row.id, max });
            return tally;
        }),
    }));
}

function healthOf(state: WebhookState, exporter: ExporterRow): ExporterHealth {
    const rows = [...state.active].filter(({ exporterId, priority }) => exporterId === exporter.id && priority > 0);
    const at = state.clock();
    const { failingSince, pausedUntil, lastOutcome } = exporter;
    return structuredClone({
        at,
        ...breakerOf(exporter),
        failingSince,
        pausedUntil,
        lastOutcome,
        inFlight: rows.filter((row) => row.state !== 'pending').length,
        backlog: backlog(
            rows.filter((row) => row.state === 'pending'),
            at,
        ),
    });
}

function countedIn({ active, exporters }: WebhookState, limit: number): Overview {
    const states = [...active].map(({ state }) => state);
    const deliveries = [...new Set(states)].map((state) => ({
        state,
        count: Math.min(limit, states.filter((other) => other === state).length),
    }));
    const alone = [...exporters.values()].map((row) => ({ ...row, running: row.state === 'running', count: 1 }));
    return overviewOf(deliveries, alone);
}

/** All are counted: they are in memory anyway. */
function backlog(rows: readonly DeliveryRow[], now: Date): Backlog {
    const counted = rows.map(({ priority, dueAt, queuedAt, event }) => {
        const oldest = priority === 1 || queuedAt === null ? dueAt : event.createdAt;
        const [age] = BACKLOG_AGES.find(([, below]) => now.getTime() - oldest.getTime() < below) as (typeof BACKLOG_AGES)[number];
        return { age, count: 1, oldest };
    });
    return backlogOf(counted, false);
}
