import type { AuditEntry, AuditQuery } from '../../lib/audit/audit-trail.ts';
import type { Export, ExportQuery } from '../../lib/inventory/export.ts';
import type { HostMove } from '../../lib/inventory/host-moves.ts';
import type { HostsPage, HostsQuery, ShownHost, ShownWorkspace } from '../../lib/inventory/host-pages.ts';
import type { Workspace } from '../../lib/inventory/resources.ts';
import type { ScanSource } from '../../lib/inventory/scan-files/read-scan.ts';
import type {
    ExpireOptions,
    ImportOptions,
    ImportSummary,
    MovedHosts,
    ReadOptions,
    RemovedHosts,
    WorkspaceChanges,
} from '../../lib/inventory/store.ts';
import type { NewWorkspaceName } from '../../lib/inventory/workspace-names.ts';
import type { ApiKeySummary, RevealedApiKey } from '../../lib/keys/api-keys.ts';
import type { Resealed } from '../../lib/keys/key-ring.ts';
import type { NewKeyOptions } from '../../lib/keys/limits.ts';
import type { LicenseStatus } from '../../lib/license/verify-license.ts';
import type { Activity, ActivityQuery } from '../../lib/webhooks/deliveries/activity.ts';
import type { AttemptFilter, AttemptQuery, ListedAttempt } from '../../lib/webhooks/deliveries/attempt-lists.ts';
import type {
    DeliveryFilter,
    DeliveryHistory,
    DeliveryMessage,
    DeliveryQuery,
    ErasedEvent,
} from '../../lib/webhooks/deliveries/deliveries.ts';
import type { Delivery } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryCount } from '../../lib/webhooks/deliveries/kept-counts.ts';
import type { Replay, ReplayOptions } from '../../lib/webhooks/deliveries/replays.ts';
import type { Choice } from '../../lib/webhooks/events/event-routing.ts';
import type { AcceptedEvent, EventSummary } from '../../lib/webhooks/events/new-event.ts';
import type { Exporter, NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import type { ShownExporter } from '../../lib/webhooks/exporters/exporter-health.ts';
import type { ExporterPageQuery, ExporterSummary, PagedExporter, SummaryQuery } from '../../lib/webhooks/exporters/exporter-lists.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import type { DraftPreview, ExporterDraft, MessagePreview } from '../../lib/webhooks/exporters/exporter-preview.ts';
import type { ReceiverWarning } from '../../lib/webhooks/exporters/receiver-url.ts';
import type { TestOptions } from '../../lib/webhooks/exporters/test-event.ts';
import type { Diagnosis } from '../../lib/webhooks/observing/doctor.ts';
import type { Outcome } from '../../lib/webhooks/outcomes/outcome.ts';
import type { AnsweredAttempt } from '../../lib/webhooks/outcomes/response-bodies.ts';
import type { RuleSet } from '../../lib/webhooks/setting-values.ts';

/*
 * What can be asked of a system, as its callers see it. A command loads this file at every start, so it imports types only: what
 * an operation does is in handlers.ts, what it accepts and answers with in schemas.ts.
 */

/** Input and output of each operation. A time is a `Date` in the process and an ISO 8601 text once it came over HTTP. */
export interface Operations {
    createKey: Operation<{ readonly name: string } & NewKeyOptions, RevealedApiKey>;
    listKeys: Operation<object, readonly ApiKeySummary[]>;
    revealKey: Operation<ById, RevealedApiKey>;
    revokeKey: Operation<ById, { readonly id: string; readonly revoked: true }>;

    /** Answers with the signing secret as well, and with the test when the exporter was started. */
    createExporter: Operation<NewExporterSettings & Start, WarnedExporter & Partial<Started> & { readonly secret: string }>;
    /** All, or those of one owner. */
    listExporters: Operation<Pick<SummaryQuery, 'owner'>, readonly Exporter[]>;
    /** Names and states of all, or of those that are asked for. */
    summarizeExporters: Operation<SummaryQuery, readonly ExporterSummary[]>;
    /** Some of them, how each fares, and what became of its deliveries within a day. */
    pageExporters: Operation<ExporterPageQuery, readonly PagedExporter[]>;
    /** Answers with how it fares as well; with the whole URL of its receiver only for `showUrl`. */
    showExporter: Operation<ById & { readonly showUrl?: boolean }, ShownExporter>;
    updateExporter: Operation<ExporterChanges & ById & Start & TestOptions, TestedExporter & Partial<Started>>;
    startExporter: Operation<ById & TestOptions, TestedExporter & Started>;
    stopExporter: Operation<ById, TestedExporter>;
    pauseExporter: Operation<ById, Exporter>;
    resumeExporter: Operation<ById, Exporter>;
    testExporter: Operation<ById & TestOptions, TestView>;
    removeExporter: Operation<ById, { readonly id: string; readonly removed: true }>;

    explainExporter: Operation<NewEventInput & ById, Choice>;
    /** A `test` needs no body. */
    previewExporter: Operation<Pick<NewEventInput, 'kind'> & Partial<Pick<NewEventInput, 'body'>> & ById, MessagePreview>;
    /** What would become of an event with settings that are not saved: of a new exporter, or of the one of the `id`. */
    previewDraft: Operation<{ readonly draft: ExporterDraft } & Pick<NewEventInput, 'kind' | 'body'>, DraftPreview>;

    publishEvent: Operation<NewEventInput & { readonly idempotencyKey?: string; readonly orderKey?: string }, AcceptedEvent>;
    /** An event without its body. */
    showEvent: Operation<ById, EventSummary>;
    /** Erases the body of an event for good. */
    eraseEvent: Operation<ById, ErasedEvent>;
    listDeliveries: Operation<Partial<DeliveryQuery>, readonly Delivery[]>;
    countDeliveries: Operation<DeliveryFilter, DeliveryCount>;
    /** Attempts that have ended, of the newest deliveries first. */
    listAttempts: Operation<Partial<AttemptQuery>, readonly ListedAttemptView[]>;
    countAttempts: Operation<AttemptFilter, DeliveryCount>;
    /** What became of the deliveries of the last hour or day. */
    showActivity: Operation<ActivityQuery, Activity>;
    showDelivery: Operation<ById, DeliveryView>;
    /** What it sends, with what is secret masked. */
    showMessage: Operation<ById, DeliveryMessage>;
    replayDelivery: Operation<ById, Delivery>;
    /** Ends it for good as `cancelled`, so that others of its order key go on. */
    discardDelivery: Operation<ById, Delivery>;

    /** Begins a replay of what an exporter was sent in vain, or of what is held for it; answers with nothing but its length when it is a dry run. */
    beginReplay: Operation<ReplayOptions & { readonly dryRun?: boolean }, Replay | { readonly total: number }>;
    listReplays: Operation<object, readonly Replay[]>;
    showReplay: Operation<ById, Replay>;
    cancelReplay: Operation<ById, Replay>;

    /** What publishing and sending need, looked at one after the other. */
    diagnose: Operation<object, Diagnosis>;
    /** The same, and the receiver of an exporter step by step, to which a test is sent. */
    diagnoseExporter: Operation<ById, Diagnosis>;

    showLicense: Operation<object, LicenseStatus>;
    installLicense: Operation<{ readonly text: string }, LicenseStatus>;
    /** Sets the key that licences are checked with; answers with what the installed one comes to. */
    trustLicense: Operation<{ readonly text: string }, LicenseStatus>;

    /** Either all hosts of the file are stored or none. */
    importScan: Operation<ImportedScan, ImportSummary>;
    /** Its text comes piece by piece; over HTTP it is the answer. */
    exportWorkspace: Operation<ExportQuery & ReadOptions, Export>;
    /** All workspaces, oldest first. */
    listWorkspaces: Operation<object, readonly Workspace[]>;
    /** A workspace with how much it holds. */
    showWorkspace: Operation<{ readonly name: string }, ShownWorkspace>;
    /** Changes what a workspace is limited to. */
    updateWorkspace: Operation<WorkspaceChanges & { readonly name: string }, Workspace>;
    /** Gives a workspace another name; never to the one that is there from the start. */
    renameWorkspace: Operation<NewWorkspaceName & { readonly name: string }, Workspace>;
    /** Removes a workspace with all that is in it; never the one that is there from the start. */
    removeWorkspace: Operation<{ readonly name: string }, RemovedHosts>;
    listHosts: Operation<HostsQuery, HostsPage>;
    /** A host with its services, notes and vulnerabilities. */
    showHost: Operation<{ readonly workspace: string; readonly address: string }, ShownHost>;
    /** Moves hosts into another workspace with all that is below them, all of them or none. */
    moveHosts: Operation<HostMove, MovedHosts>;
    /** Removes the hosts of an address, a block or a range, or says how many that would be. */
    removeHosts: Operation<{ readonly workspace: string; readonly address: string; readonly dryRun?: boolean }, RemovedHosts>;
    /** Removes hosts that no scan has seen for a while, or says how many that would be. */
    expireHosts: Operation<ExpireOptions & { readonly workspace: string }, RemovedHosts>;
    /** Seals a batch of what is at rest with the current key of the ring; goes on from `next` of the batch before. */
    rotateKeyRing: Operation<{ readonly after?: string }, Resealed>;
    /** Ids of the migrations that ran now; none when the schema was up to date. */
    migrate: Operation<object, { readonly applied: readonly string[] }>;
    /** What people have done, newest first. */
    listAudit: Operation<Partial<AuditQuery>, readonly AuditEntry[]>;
}

interface Operation<Input extends object, Output> {
    readonly input: Input;
    readonly output: Output;
}

interface ById {
    readonly id: string;
}

interface NewEventInput {
    readonly kind: string;
    readonly body: unknown;
    readonly rules?: RuleSet;
    readonly owner?: string;
}

/** What a start answers with besides the exporter. */
interface Started {
    readonly test: TestView;
    readonly held: DeliveryCount;
}

interface Start {
    /** Starts the exporter too, which sends a test event. */
    readonly start?: boolean;
}

/** Name of an operation. */
export type OperationName = keyof Operations;
/** What an operation takes. */
export type Input<Name extends OperationName> = Operations[Name]['input'];
/** What an operation answers with. */
export type Output<Name extends OperationName> = Operations[Name]['output'];
/** The operations whose answer is no JSON: they are {@link Endpoint.downloads}. */
export type DownloadName = { readonly [Name in OperationName]: Output<Name> extends Export ? Name : never }[OperationName];

/** An exporter after a change, with the test event that the change sent. */
export type TestedExporter = WarnedExporter & { readonly test: TestView };

/** An exporter, and what is doubtful about its receiver. */
export type WarnedExporter = Exporter & { readonly warnings: readonly ReceiverWarning[] };

/** What a test event came to. */
export interface TestView {
    readonly deliveryId: string;
    /** Null when it had no outcome in the time that it was waited for. */
    readonly attempt: AttemptView | null;
}

/** An attempt with the fields of its outcome beside its times; they are null while it is under way. */
export type AttemptView = Omit<AnsweredAttempt, 'outcome'> & {
    readonly [Field in keyof Required<Outcome>]: Required<Outcome>[Field] | null;
};

/** An attempt of a list, without what the receiver answered. */
export type ListedAttemptView = Omit<AttemptView, 'responseBody'> & Omit<ListedAttempt, keyof AnsweredAttempt>;

/** A delivery with its attempts, first to last, and how far a test is that this process is sending. */
export type DeliveryView = Delivery & Pick<DeliveryHistory, 'progress'> & { readonly history: readonly AttemptView[] };

/** Where an operation is found over HTTP, and what its caller has to know. */
export interface Endpoint {
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    /** Below the prefix of the routes; a part in braces is the field of that name in the input. */
    readonly path: string;
    /** The body is the `source` of the input as it is; the other fields go into the query. Else the body is JSON. */
    readonly streamed?: true;
    /** The answer is the `text` of the output as it is made; else it is JSON. */
    readonly downloads?: true;
    /** Makes sense before there is any data: a data folder is made for it. */
    readonly creates?: true;
    /** Leaves something in the data folder whatever the database: what it installs, or the key ring that it has sealed with. */
    readonly keeps?: 'files' | 'keyRing';
    /** Waits for a delivery, so a worker must run somewhere. */
    readonly delivers?: true;
}

/** The method and path of each operation. */
export const endpoints: { readonly [Name in OperationName]: Endpoint } = {
    createKey: { method: 'POST', path: '/keys', creates: true, keeps: 'keyRing' },
    listKeys: { method: 'GET', path: '/keys' },
    revealKey: { method: 'GET', path: '/keys/{id}' },
    revokeKey: { method: 'DELETE', path: '/keys/{id}' },

    createExporter: { method: 'POST', path: '/exporters', creates: true, keeps: 'keyRing', delivers: true },
    listExporters: { method: 'GET', path: '/exporters' },
    summarizeExporters: { method: 'GET', path: '/exporters/summary' },
    pageExporters: { method: 'GET', path: '/exporters/page' },
    showExporter: { method: 'GET', path: '/exporters/{id}' },
    updateExporter: { method: 'PATCH', path: '/exporters/{id}', delivers: true },
    startExporter: { method: 'POST', path: '/exporters/{id}/start', delivers: true },
    stopExporter: { method: 'POST', path: '/exporters/{id}/stop', delivers: true },
    pauseExporter: { method: 'POST', path: '/exporters/{id}/pause' },
    resumeExporter: { method: 'POST', path: '/exporters/{id}/resume' },
    testExporter: { method: 'POST', path: '/exporters/{id}/test', delivers: true },
    removeExporter: { method: 'DELETE', path: '/exporters/{id}' },

    explainExporter: { method: 'POST', path: '/exporters/{id}/explain' },
    previewExporter: { method: 'POST', path: '/exporters/{id}/preview' },
    previewDraft: { method: 'POST', path: '/drafts/preview' },

    publishEvent: { method: 'POST', path: '/events/{kind}' },
    showEvent: { method: 'GET', path: '/events/{id}' },
    eraseEvent: { method: 'DELETE', path: '/events/{id}/body' },
    listDeliveries: { method: 'GET', path: '/deliveries' },
    countDeliveries: { method: 'GET', path: '/deliveries/count' },
    listAttempts: { method: 'GET', path: '/attempts' },
    countAttempts: { method: 'GET', path: '/attempts/count' },
    showActivity: { method: 'GET', path: '/deliveries/activity' },
    showDelivery: { method: 'GET', path: '/deliveries/{id}' },
    showMessage: { method: 'GET', path: '/deliveries/{id}/message' },
    replayDelivery: { method: 'POST', path: '/deliveries/{id}/replay' },
    discardDelivery: { method: 'POST', path: '/deliveries/{id}/discard' },

    beginReplay: { method: 'POST', path: '/replays' },
    listReplays: { method: 'GET', path: '/replays' },
    showReplay: { method: 'GET', path: '/replays/{id}' },
    cancelReplay: { method: 'POST', path: '/replays/{id}/cancel' },

    diagnose: { method: 'GET', path: '/doctor' },
    diagnoseExporter: { method: 'POST', path: '/exporters/{id}/doctor', delivers: true },

    showLicense: { method: 'GET', path: '/license' },
    installLicense: { method: 'POST', path: '/license', creates: true, keeps: 'files' },
    trustLicense: { method: 'POST', path: '/license/key', creates: true, keeps: 'files' },

    importScan: { method: 'POST', path: '/import', streamed: true, creates: true },
    exportWorkspace: { method: 'GET', path: '/export', downloads: true },
    listWorkspaces: { method: 'GET', path: '/workspaces' },
    showWorkspace: { method: 'GET', path: '/workspaces/{name}' },
    updateWorkspace: { method: 'PATCH', path: '/workspaces/{name}' },
    renameWorkspace: { method: 'POST', path: '/workspaces/{name}/rename' },
    removeWorkspace: { method: 'DELETE', path: '/workspaces/{name}' },
    listHosts: { method: 'GET', path: '/hosts' },
    showHost: { method: 'GET', path: '/hosts/{address}' },
    moveHosts: { method: 'POST', path: '/hosts/move' },
    removeHosts: { method: 'POST', path: '/hosts/remove' },
    expireHosts: { method: 'POST', path: '/hosts/expire' },
    rotateKeyRing: { method: 'POST', path: '/keyring/rotate' },
    migrate: { method: 'POST', path: '/migrations', creates: true },
    listAudit: { method: 'GET', path: '/audit' },
};

/** A scan to import. */
export interface ImportedScan extends Omit<ImportOptions, 'origin'>, ScanSource {
    readonly workspace: string;
    readonly source: AsyncIterable<Uint8Array>;
    /**
     * SHA-256 of the bytes of `source`, in base64. Where they have another one, nothing is imported; where the same were imported before, and nothing has changed since, they
     * are not looked at. Over HTTP it is the header `Content-Digest`.
     */
    readonly sha256?: string | undefined;
}

/** Whoever accepts this gets the progress of a streamed operation as lines of JSON, and its answer as the last one. */
export const PROGRESS_TYPE = 'application/x-ndjson';

/** The value of `Content-Digest` for a scan that is sent. @param sha256 In base64. */
export function contentDigest(sha256: string): string {
    return `sha-256=:${sha256}:`;
}
