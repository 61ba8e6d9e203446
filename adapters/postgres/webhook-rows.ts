import { EXPORTER_FIELDS, type StoredExporter } from '../../lib/webhooks/exporter.ts';
import type { Attempt, Claim, Delivery } from '../../lib/webhooks/store.ts';

/** A `timestamptz` as the driver gives it: a Date, unless the application has told its driver otherwise. */
type Time = Date | string;

/** What is selected for a `T`: its fields under their own names, times as the driver gives them. */
export type Row<T> = { readonly [Field in keyof T]: T[Field] extends Date ? Time : T[Field] extends Date | null ? Time | null : T[Field] };

const exporterFields = Object.keys(EXPORTER_FIELDS) as (keyof StoredExporter)[];
const exporterTimes = exporterFields.filter((field) => EXPORTER_FIELDS[field] === 'time');

/** A {@link StoredExporter} of exporters `e`. */
export const EXPORTER_COLUMNS: string = exporterFields.map((field) => `e.${columnOf(field)} as "${field}"`).join(', ');

/** The exporter of a row of {@link EXPORTER_COLUMNS}. */
export function exporterFromRow(row: Row<StoredExporter>): StoredExporter {
    return withDates(row, exporterTimes);
}

/**
 * Column and parameter of each field that is set. Names of columns come from the table of fields only, never from the input; lists
 * are JSON text, which both drivers pass on untouched.
 */
export function exporterColumns(values: Partial<StoredExporter>): Record<string, unknown> {
    const set = exporterFields.filter((field) => values[field] !== undefined);
    return Object.fromEntries(set.map((field) => [columnOf(field), parameter(values[field])]));
}

/** `header_names` for `headerNames`. */
function columnOf(field: string): string {
    return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function parameter(value: unknown): unknown {
    return Array.isArray(value) ? JSON.stringify(value) : value;
}

/** A {@link Delivery} of deliveries `d`, their events `v` and, where they still exist, exporters `e`. */
export const DELIVERY_COLUMNS = `d.id, d.event_id as "eventId", v.kind, d.exporter_id as "exporterId",
    coalesce(e.collector, d.collector) as collector, d.state, d.attempts, d.due_at as "dueAt", v.created_at as "createdAt",
    d.finished_at as "finishedAt", d.last_code as "lastCode"`;

/** The delivery of a row of {@link DELIVERY_COLUMNS}. */
export function deliveryFromRow(row: Row<Delivery>): Delivery {
    return withDates(row, ['dueAt', 'createdAt', 'finishedAt']);
}

/** The attempt of a row with its fields under their own names. */
export function attemptFromRow(row: Row<Attempt>): Attempt {
    return withDates(row, ['startedAt', 'finishedAt']);
}

/** A claim beside its event and the columns of its exporter. */
export interface ClaimRow
    extends Row<StoredExporter>,
        Pick<Claim, 'deliveryId' | 'token' | 'attempt' | 'attemptSinceReplay' | 'singleAttempt'> {
    /** Of its request, from 0. */
    readonly index: number;
    readonly eventId: string;
    readonly kind: string;
    readonly body: string;
    readonly eventCreatedAt: Time;
}

/** The claim of a row that joins its delivery, event and exporter. */
export function claimFromRow({ index: _, eventId, kind, body, eventCreatedAt, ...row }: ClaimRow): Claim {
    const { deliveryId, token, attempt, attemptSinceReplay, singleAttempt, ...exporter } = row;
    return {
        deliveryId,
        token,
        attempt,
        attemptSinceReplay,
        singleAttempt,
        event: { id: eventId, kind, body, createdAt: new Date(eventCreatedAt) },
        exporter: exporterFromRow(exporter),
    };
}

function withDates<T>(row: Row<T>, times: readonly (keyof T)[]): T {
    const date = (time: unknown): Date | null => (time === null ? null : new Date(time as Time));
    return { ...row, ...Object.fromEntries(times.map((field) => [field, date(row[field])])) } as T;
}
