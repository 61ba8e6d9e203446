import type { Executor } from '../../transaction.ts';
import type { ExporterNotice } from '../events/exporter-notices.ts';
import type { SubscribedExporters } from '../events/new-event.ts';
import type { StoredExporter } from './exporter.ts';
import type { ExporterHealth, Overview } from './exporter-health.ts';
import type { ExporterPageRequest, ExporterSummary, PagedRow, SummaryQuery } from './exporter-lists.ts';
import type { ExporterPatch } from './exporter-patch.ts';

/** How long a read may take. */
export interface ReadOptions {
    /** For what goes on without a request: as long as anything else. Otherwise a store gives up so soon that somebody who waits for a response gets one. */
    readonly patient?: boolean;
}

/** Exporters. All methods reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface ExporterStore {
    /** What the rows are in: stores that name different ones are refused together. Absent where that cannot be known. */
    readonly database?: object;
    insert(exporter: StoredExporter): Promise<void>;
    get(id: string): Promise<StoredExporter | null>;
    /** Oldest first; of one owner only, where that is named. A store without `page` may not heed that: then all are answered. */
    list(options?: ReadOptions & Pick<SummaryQuery, 'owner'>): Promise<readonly StoredExporter[]>;
    /** How it fares; null when there is none. However long its backlog is, a bounded number of rows is read. */
    health(id: string): Promise<ExporterHealth | null>;
    /** What names of `list` and states are, of all that the query names. Optional: else it is made of all that is listed. */
    summaries?(query: SummaryQuery): Promise<readonly ExporterSummary[]>;
    /**
     * Some of `list`, how each fares, and what became of its deliveries. However many exporters and deliveries there are, a bounded number of
     * rows of deliveries is read. Optional: else all are listed, and each of the page is asked for.
     */
    page?(request: ExporterPageRequest): Promise<readonly PagedRow[]>;
    /** How much there is to do; a bounded number of rows is read. Optional. @param limit How many deliveries of a stage are counted at most. */
    overview?(limit: number): Promise<Overview>;
    /**
     * The exporters that choose and are running, or stopped by an outcome: with an owner, kinds, a filter or a format of their own. Absent in a
     * store that keeps none of these, where they are refused.
     *
     * @param tx As in `DeliveryStore.accept`, whose transaction then sees the same.
     */
    subscribers?(tx?: Executor): Promise<SubscribedExporters>;
    /**
     * What has become of exporters while outcomes were recorded and was not forgotten yet, oldest first: that a breaker opened, that an
     * exporter was stopped by an outcome, and the first delivered one after either. One for each change, stored with it. Absent in a
     * store that keeps none.
     */
    notices?(limit: number): Promise<readonly ExporterNotice[]>;
    /** Those that were published. */
    forgetNotices?(ids: readonly string[]): Promise<void>;
    /**
     * The exporter after the change. Starting one (`state: 'running'`) also resets its failures and its breaker; for one that is resumed the time
     * for which it was paused does not count as time for which it failed.
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT`.
     */
    update(id: string, patch: ExporterPatch): Promise<StoredExporter>;
    /**
     * Removes the exporter with its secrets; its deliveries that have not ended, `held` ones too, become `cancelled` in the same transaction, or, where
     * they are many, in steps before it, while the exporter is stopped: a removal that is cut short then leaves it so, to be removed again. False
     * when there was none.
     */
    remove(id: string): Promise<boolean>;
}
