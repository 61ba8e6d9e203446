export type { ApplicationSchema, JoiSchema, StandardSchema } from '../application-schema.ts';
export { type EgressGuard, type EgressPolicy, egressGuard } from '../egress/guard.ts';
export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { timestamp } from '../timestamp.ts';
export type * from './authentication.ts';
export type { ExportType, FormatName, RuleSet, SignatureForm, Trust } from './choices.ts';
export type { Deliveries, DeliveryHistory, ErasedEvent, Events } from './deliveries.ts';
export type { Diagnosis, Doctor, Finding, FindingPart } from './doctor.ts';
export type { EventKind, EventKinds } from './event-kinds.ts';
export type { RefusedResponse } from './exchange.ts';
export type * from './exporter.ts';
export type { Backlog, BacklogAge, Breaker, ExporterHealth, Overview, ShownExporter } from './exporter-health.ts';
export type { DraftPreview, ExplainOptions, ExporterDraft, ExporterQuestions } from './exporter-questions.ts';
export type { ChangedExporter, CreatedExporter, Exporters, TestResult } from './exporters.ts';
export type { Condition, FailedCondition, Filter, FilterOp, Scalar } from './filter.ts';
export {
    type Format,
    type FormatEvent,
    type FormatSecret,
    type FormatSettings,
    type Formatted,
    SECRET_PLACEHOLDER,
} from './formats/index.ts';
export {
    type AcceptedNotice,
    DELIVERY_EVENTS,
    type DeliveryEvent,
    EXPORTER_EVENTS,
    type ExporterEvent,
    type WebhookEvent,
} from './host-events.ts';
export type * from './http-sender.ts';
export { httpSender } from './http-sender.ts';
export { type MetricsOptions, type MetricsRegistry, type WebhookMetrics, webhookMetrics } from './metrics.ts';
export type { WebhookStores, WebhooksOptions, WebhooksSettings } from './options.ts';
export { OUTCOME_CODES, type Outcome, type OutcomeCode, type PresentedCertificate, type Timings } from './outcome.ts';
export type { OwnerLimits, OwnerSettings } from './owners.ts';
export type { Publish, PublishedEvent, PublishOptions } from './publisher.ts';
export type * from './queue.ts';
export type { Readiness, UnreadyReason } from './readiness.ts';
export type { ReceiverWarning } from './receiver-url.ts';
export type { AnsweredAttempt, AttemptResponse, ResponseBody, ResponseStore } from './response-bodies.ts';
export { DEFAULT_SCHEDULE } from './schedule.ts';
export type { Deployment, DeploymentSettings, Role, SettingsStore } from './settings.ts';
export type * from './store.ts';
export type { Subscription, SubscriptionVerdict } from './subscription.ts';
export { type Tracing, type TracingOptions, webhookTracing } from './tracing.ts';
export { type CloseOptions, type Webhooks, type WorkerOptions, webhooks } from './webhooks.ts';
