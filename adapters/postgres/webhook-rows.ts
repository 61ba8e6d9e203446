import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import type { Attempt, Claim, Delivery, ExporterPatch } from '../../lib/webhooks/store.ts';

/** A `timestamptz` as the driver gives it: a Date, unless the host has told its driver otherwise. */
type Time = Date | string;

export interface ExporterRow {
    readonly id: string;
    readonly name: string;
    readonly url: string;
    readonly collector: string;
    readonly type: StoredExporter['type'];
    readonly legacy: boolean;
    readonly trust: StoredExporter['trust'];
    readonly signatures: StoredExporter['signatures'];
    readonly header_names: readonly string[];
    readonly state: StoredExporter['state'];
    readonly stop_reason: string | null;
    readonly consecutive_failures: number;
    readonly sealed_secret: string;
    readonly sealed_previous_secret: string | null;
    readonly previous_secret_until: Time | null;
    readonly sealed_headers: string | null;
    readonly schedule: readonly number[] | null;
    readonly created_at: Time;
    readonly updated_at: Time;
}

type PatchedProperty = Exclude<keyof ExporterPatch, 'ifType'>;

/** The columns that may be patched, by property. */
export const EXPORTER_COLUMNS: { readonly [K in PatchedProperty]: keyof ExporterRow } = {
    name: 'name',
    url: 'url',
    collector: 'collector',
    type: 'type',
    trust: 'trust',
    signatures: 'signatures',
    headerNames: 'header_names',
    state: 'state',
    stopReason: 'stop_reason',
    sealedSecret: 'sealed_secret',
    sealedPreviousSecret: 'sealed_previous_secret',
    previousSecretUntil: 'previous_secret_until',
    sealedHeaders: 'sealed_headers',
    schedule: 'schedule',
};

export function exporterFromRow(row: ExporterRow): StoredExporter {
    return {
        id: row.id,
        name: row.name,
        url: row.url,
        collector: row.collector,
        type: row.type,
        legacy: row.legacy,
        trust: row.trust,
        signatures: row.signatures,
        headerNames: row.header_names,
        state: row.state,
        stopReason: row.stop_reason,
        consecutiveFailures: row.consecutive_failures,
        createdAt: time(row.created_at),
        updatedAt: time(row.updated_at),
        sealedSecret: row.sealed_secret,
        sealedPreviousSecret: row.sealed_previous_secret,
        previousSecretUntil: timeOrNull(row.previous_secret_until),
        sealedHeaders: row.sealed_headers,
        schedule: row.schedule,
    };
}

/** A value of an exporter as a parameter: lists as JSON text, which both drivers pass on untouched. */
export function exporterParameter(value: unknown): unknown {
    return Array.isArray(value) ? JSON.stringify(value) : value;
}

export interface DeliveryRow {
    readonly id: string;
    readonly event_id: string;
    readonly kind: string;
    readonly exporter_id: string;
    readonly collector: string;
    readonly state: Delivery['state'];
    readonly attempts: number;
    readonly due_at: Time;
    readonly created_at: Time;
    readonly finished_at: Time | null;
    readonly last_code: Delivery['lastCode'];
}

/** {@link DeliveryRow} from deliveries `d`, their events `v` and, where they still exist, exporters `e`. */
export const DELIVERY_COLUMNS: string =
    'd.id, d.event_id, v.kind, d.exporter_id, coalesce(e.collector, d.collector) as collector, d.state, d.attempts, d.due_at, v.created_at, d.finished_at, d.last_code';

export function deliveryFromRow(row: DeliveryRow): Delivery {
    return {
        id: row.id,
        eventId: row.event_id,
        kind: row.kind,
        exporterId: row.exporter_id,
        collector: row.collector,
        state: row.state,
        attempts: row.attempts,
        dueAt: time(row.due_at),
        createdAt: time(row.created_at),
        finishedAt: timeOrNull(row.finished_at),
        lastCode: row.last_code,
    };
}

export interface AttemptRow {
    readonly number: number;
    readonly started_at: Time;
    readonly finished_at: Time | null;
    readonly outcome: Attempt['outcome'];
    readonly late: boolean;
}

export function attemptFromRow(row: AttemptRow): Attempt {
    return {
        number: row.number,
        startedAt: time(row.started_at),
        finishedAt: timeOrNull(row.finished_at),
        outcome: row.outcome,
        late: row.late,
    };
}

/** A claim beside its event and its exporter. */
export interface ClaimRow extends ExporterRow {
    readonly place: number;
    readonly delivery_id: string;
    readonly claim_token: string;
    readonly attempt: number;
    readonly round: number;
    readonly single: boolean;
    readonly event_id: string;
    readonly kind: string;
    readonly body: string;
    readonly event_created_at: Time;
}

export function claimFromRow(row: ClaimRow): Claim {
    return {
        deliveryId: row.delivery_id,
        token: row.claim_token,
        attempt: row.attempt,
        round: row.round,
        single: row.single,
        event: { id: row.event_id, kind: row.kind, body: row.body, createdAt: time(row.event_created_at) },
        exporter: exporterFromRow(row),
    };
}

function time(value: Time): Date {
    return new Date(value);
}

function timeOrNull(value: Time | null): Date | null {
    return value === null ? null : time(value);
}
