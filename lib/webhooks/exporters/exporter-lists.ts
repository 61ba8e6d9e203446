import Joi from 'joi';
import { checked, storableText } from '../../schema-validation.ts';
import { boundsOf, type SliceTally, type SliceTimes, slicesOf } from '../deliveries/activity.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { Exporter, StoredExporter } from './exporter.ts';
import { type ExporterHealth, type ShownExporter, withHealth } from './exporter-health.ts';
import type { ExporterStore } from './exporter-store.ts';

/** Which exporters of the list are asked for. */
export interface ExporterPageQuery {
    /** Exporters behind the one with this id; from the first on when absent. */
    readonly after?: string;
    /** How many at most: 25 by default, 100 at most. */
    readonly limit?: number;
    /** Of this owner only. */
    readonly owner?: string;
}

/** An exporter as a list shows it to people who look for what is not well. */
export interface PagedExporter extends ShownExporter {
    /** What became of the deliveries that were accepted within a day, in slices of three hours, first to last; null in a store that does not tell. */
    readonly day: readonly DaySlice[] | null;
}

/** What became of deliveries in one slice of a day. */
export interface DaySlice extends SliceTally, SliceTimes {}

/** The fields of an exporter that lists of names and of states need. None of them is sealed. */
export type ExporterSummary = Pick<
    Exporter,
    'id' | 'name' | 'collector' | 'owner' | 'state' | 'stopReason' | 'pausedAt' | 'consecutiveFailures'
>;

/** Which exporters are summarised: those that fulfil all of it. */
export interface SummaryQuery {
    readonly ids?: readonly string[];
    readonly owner?: string;
}

/** What lists show of exporters. @throws ScanwireError `INVALID_INPUT`. */
export interface ExporterLists {
    /** Names and states of all, oldest first, or of those that are asked for. */
    summaries(query?: SummaryQuery): Promise<readonly ExporterSummary[]>;
    /** Some of the list, how each fares, and what became of its deliveries within a day. */
    page(query?: ExporterPageQuery): Promise<readonly PagedExporter[]>;
}

/** What a store is asked for. */
export interface ExporterPageRequest {
    readonly after?: string;
    readonly limit: number;
    readonly owner?: string;
    /** Times that ascend; between each two of them deliveries are counted. */
    readonly bounds: readonly Date[];
    /** The most deliveries of an exporter that are looked at between two of them, the newest ones. */
    readonly max: number;
}

/** One exporter as a store answers. */
export interface PagedRow {
    readonly exporter: StoredExporter;
    readonly health: ExporterHealth;
    readonly slices: readonly SliceTally[];
}

const HOUR = 3_600_000;
const DAY = { span: 24 * HOUR, slice: 3 * HOUR };

/** How many deliveries of an exporter are looked at in a slice: enough to tell the share of failures, and few enough for a page of a hundred exporters. */
export const MAX_OF_EACH = 40;

type Asked = ExporterPageQuery & Required<Pick<ExporterPageQuery, 'limit'>>;

/** The rules of {@link ExporterPageQuery}, with their defaults. */
export const exporterPageSchema: Joi.ObjectSchema<Asked> = Joi.object<Asked, true>({
    after: storableText(),
    limit: Joi.number().integer().min(1).max(100).default(25),
    owner: storableText(),
})
    .label('query')
    .default();

/** Whose exporters are listed in full. */
export const ownerQuerySchema: Joi.ObjectSchema<Pick<SummaryQuery, 'owner'>> = Joi.object<Pick<SummaryQuery, 'owner'>>({
    owner: storableText(),
})
    .label('query')
    .default({});

const summaryQuerySchema = Joi.object<SummaryQuery>({ ids: Joi.array().items(storableText()), owner: storableText() })
    .label('query')
    .default({});

type Context = Pick<WebhooksContext, 'exporters' | 'deliveries' | 'breakerRules'>;

/** The lists of a store. @param visible The exporter without what only the sender may see. */
export function exporterLists(context: Context, visible: (exporter: StoredExporter) => Exporter): ExporterLists {
    const { exporters: store, deliveries, breakerRules } = context;
    return {
        async summaries(query) {
            const asked: SummaryQuery = checked(summaryQuerySchema, query);
            return (await store.summaries?.(asked)) ?? (await allOf(store, asked)).map(summaryOf);
        },

        async page(query) {
            const asked = checked(exporterPageSchema, query);
            const bounds = boundsOf(await deliveries.now(), DAY);
            const rows = (await store.page?.({ ...asked, bounds, max: MAX_OF_EACH })) ?? (await rowsOf(store, asked));
            return rows.map(({ exporter, health, slices }) => ({
                ...withHealth(visible(exporter), health, breakerRules),
                day: slices === null ? null : slicesOf(slices, bounds, MAX_OF_EACH),
            }));
        },
    };
}

/** The summary of an exporter. */
export function summaryOf(exporter: ExporterSummary): ExporterSummary {
    const { id, name, collector, owner, state, stopReason, pausedAt, consecutiveFailures } = exporter;
    return { id, name, collector, owner, state, stopReason, pausedAt, consecutiveFailures };
}

/** All exporters that fulfil the query, whether the store heeds it or not. */
export async function allOf({ list }: ExporterStore, { ids, owner }: SummaryQuery): Promise<readonly StoredExporter[]> {
    return (await list(owner === undefined ? {} : { owner })).filter(
        (one) => ids?.includes(one.id) !== false && (owner ?? one.owner) === one.owner,
    );
}

async function rowsOf(
    store: ExporterStore,
    { after, limit, ...query }: Asked,
): Promise<readonly (Omit<PagedRow, 'slices'> & { readonly slices: null })[]> {
    const all = await allOf(store, query);
    const first = all.findIndex(({ id }) => id === after) + 1;
    const rows = all.slice(first, first + limit).map(async (exporter) => ({ exporter, health: await store.health(exporter.id) }));
    return (await Promise.all(rows)).flatMap(({ exporter, health }) => (health === null ? [] : [{ exporter, health, slices: null }]));
}
