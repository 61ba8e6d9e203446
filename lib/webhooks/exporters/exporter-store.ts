import type { Executor } from '../../transaction.ts';
import type { ExporterNotice } from '../events/exporter-notices.ts';
import type { SubscribedExporters } from '../events/new-event.ts';
import type { StoredExporter } from './exporter.ts';
import type { ExporterHealth, Overview } from './exporter-health.ts';
import type { ExporterPageRequest, ExporterSummary, PagedRow, SummaryQuery } from './exporter-lists.ts';
import type { ExporterPatch } from './exporter-patch.ts';

/** How long a read may take. */
export interface ReadOptions {
    /**
     * Whether the read may take as long as any other statement, for work that no request waits for. Otherwise a store gives up so soon that
     * whoever waits for a response gets one.
     */
    readonly patient?: boolean;
}

/** Exporters. All methods reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface ExporterStore {
    /** The database that holds the rows: stores that name different databases are refused when they are given together. Absent where that cannot be known. */
    readonly database?: object;
    insert(exporter: StoredExporter): Promise<void>;
    get(id: string): Promise<StoredExporter | null>;
    /** Oldest first; of one owner only, where that is named. A store without `page` may not heed the owner, and answers with all. */
    list(options?: ReadOptions & Pick<SummaryQuery, 'owner'>): Promise<readonly StoredExporter[]>;
    /** How it fares; null when there is none. However long its backlog is, a bounded number of rows is read. */
    health(id: string): Promise<ExporterHealth | null>;
    /** Names and states of the exporters that the query names. Optional: without it they are made from all that `list` gives. */
    summaries?(query: SummaryQuery): Promise<readonly ExporterSummary[]>;
    /**
     * Some of `list`, how each fares, and what became of its deliveries. However many exporters and deliveries there are, it reads a bounded
     * number of delivery rows. Optional: without it all exporters are listed, and each of the page is asked for by itself.
     */
    page?(request: ExporterPageRequest): Promise<readonly PagedRow[]>;
    /** How much there is to do; a bounded number of rows is read. Optional. @param limit How many deliveries of each state are counted at most. */
    overview?(limit: number): Promise<Overview>;
    /**
     * The subscribers (exporters with an owner, kinds, a filter or a format) that are running, or were stopped by an outcome.
     * Absent in a store that cannot keep such settings, where they are refused.
     *
     * @param tx As in `DeliveryStore.accept`, whose transaction then sees the same.
     */
    subscribers?(tx?: Executor): Promise<SubscribedExporters>;
    /**
     * What became of exporters while outcomes were recorded, oldest first, as far as it was not forgotten yet: that a breaker opened, that an
     * outcome stopped an exporter, and the first success after either. There is one notice for each change, stored together with it. Absent in a
     * store that keeps no notices.
     *
     * @param after Only those behind this `position`, whether its notice was forgotten since or not; from the first one by default.
     */
    notices?(limit: number, after?: number): Promise<readonly ExporterNotice[]>;
    /**
     * Removes notices that were published.
     *
     * @returns The ids of those that this call has removed: of several processes that publish one, only one has its id.
     */
    forgetNotices?(ids: readonly string[]): Promise<readonly string[]>;
    /**
     * The exporter after the change. Starting one (`state: 'running'`) also resets its failures and its breaker; for one that is resumed the time
     * for which it was paused does not count as time for which it failed.
     *
     * Another `owner` is stored only while no delivery of the exporter but those of `test` events, and no replay, is kept; and nothing of the owner
     * before that is being accepted at the same time becomes a delivery to it afterwards.
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT`, with the field `owner` where that cannot change.
     */
    update(id: string, patch: ExporterPatch): Promise<StoredExporter>;
    /**
     * Removes the exporter with its secrets. Its deliveries that have not ended, `held` ones too, become `cancelled` in the same transaction.
     * Where they are many, the exporter is stopped first, and they are cancelled in steps before that transaction; a removal that is cut short
     * leaves the exporter stopped, and may be repeated. False when there was no such exporter.
     */
    remove(id: string): Promise<boolean>;
}
