/**
 * The engine that brings events to receivers. Its words, each with the file where it is at home:
 *
 * Who takes part:
 * - host: the application that publishes; a process with the role `host` also sets the deployment's settings (`settings.ts`)
 * - deployment: all processes that share one store and its settings; member: a process, as one of them (`settings.ts`)
 * - worker: a process with the role `worker`, which only sends; or what sends for one collector within a process (`delivery-worker.ts`)
 * - vendor: the name under which messages are sent, as in `X-<vendor>-Event` (`signature.ts`)
 * - receiver: the server that an exporter's URL leads to; trust: how far its certificate is checked (`setting-values.ts`)
 *
 * What is sent:
 * - event: something that happened, accepted once, its body frozen as text (`new-event.ts`); its kind says what a body looks like (`event-kinds.ts`)
 * - exporter: a configured receiver (`exporter.ts`); it chooses events by its kinds and filter (`subscription.ts`), and an event is routed to all that do
 * - type (export type): which investigations an exporter may get; without a subscription of its own it gets all of these (`setting-values.ts`)
 * - subscriber: an exporter with a subscription of its own; recipient: one that an event goes to (`subscriptions.ts`)
 * - revision: how often subscriptions had changed; what was routed by an older one is routed again
 * - format: the form of a body, for example `slack`; template: a format that a person has written; message: what a format has made of an
 *   event, or its own body, with the headers (`formatting.ts`); signature form: how the signature is written (`signature.ts`)
 * - owner: the customer of the application whose exporter or event it is; none for the deployment's own (`owners.ts`)
 * - collector: the named pool of workers that sends for an exporter (`delivery-worker.ts`)
 * - delivery: one event on its way to one exporter (`store.ts`)
 * - attempt: one POST of a delivery; outcome: what it came to (`outcome.ts`)
 * - fault: the outcome `interrupted`, of an attempt that we have cut off, by a claim that ran out or a process that ended; it counts as no try
 * - first try: a delivery with no attempt yet; retry: one with some, or one that is replayed among many
 * - test: an event for one exporter alone, sent when that is changed, or when somebody asks for it
 * - single attempt: all that a delivery with a `test` gets, whatever comes of it
 * - held: accepted for an exporter that an outcome has stopped; sent once it is replayed
 * - order key: what events have in common that an ordered exporter gets one after another; a delivery blocks its key while later ones wait for it
 * - exhausted: out of tries; poisoned: set aside, since its attempts seem to end the processes that make them
 * - replay: a delivery, or many of an exporter, sent once more by a new retry schedule (`replays.ts`)
 * - notice: what became of an exporter, published as an event and emitted to the application (`notices.ts`)
 * - host event: what is emitted to the application's `onEvent`, and sent to no receiver, for example a `DeliveryEvent` (`host-events.ts`)
 *
 * Who may send it, and when:
 * - dispatch, or hand out: to mark deliveries that are due as `queued` and give them to the queue (`dispatcher.ts`)
 * - window: how many deliveries of an exporter may be in flight, `queued` or `sending`; place: one of these, free or taken; room: the free places
 * - share group: the slow or the quick exporters of a collector, which share its slots (`shares.ts`)
 * - slot: one attempt that a worker can make at a time; share: what an exporter may have of its collector's slots (`shares.ts`)
 * - claim: the lease of a delivery for one attempt, so that nobody else sends the same (`store.ts`)
 * - reservation: a claim made when a delivery is handed out, for whoever gets its job in time (`reservations.ts`)
 * - session: a process that claims, for as long as its heartbeats come; its claims end with it (`session.ts`)
 * - sweep: to find claims whose sessions have ended, and jobs that the queue has lost
 * - breaker: open after failures in a row; probe: the one delivery that an open one lets through at a time (`breaker.ts`)
 * - pause: the time for which a receiver wants to be left alone, or a person has its exporter wait
 * - generation: how often the settings of the deployment or of an exporter had changed (`settings.ts`)
 * - sealed: encrypted for one exporter by the key ring; unsealed only to send or to show it; context: what it was sealed for
 * - body memory: how many bytes of bodies a process may have at once; allowance: what of it an exporter may take now (`byte-budget.ts`)
 */

export type { ApplicationSchema, JoiSchema, StandardSchema } from '../application-schema.ts';
export { type EgressGuard, type EgressPolicy, egressGuard } from '../egress/guard.ts';
export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { timestamp } from '../timestamp.ts';
export type * from './authentication.ts';
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
} from './formats/format-table.ts';
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
export type { ExportType, FormatName, RuleSet, SignatureForm, Trust } from './setting-values.ts';
export type { Deployment, DeploymentSettings, Role, SettingsStore } from './settings.ts';
export type * from './store.ts';
export type { Subscription, SubscriptionVerdict } from './subscription.ts';
export { type Tracing, type TracingOptions, webhookTracing } from './tracing.ts';
export { type CloseOptions, type Webhooks, type WorkerOptions, webhooks } from './webhooks.ts';
