/**
 * The engine that brings events to receivers. Its words, each with the file where it is at home:
 *
 * Who takes part:
 * - host: the application that publishes; a process with the role `host` also sets the deployment's settings (`deployment-settings.ts`)
 * - deployment: all processes that share one store and its settings; member: a process, as one of them (`deployment-settings.ts`)
 * - collector: a named pool of workers, for example those inside a customer's network; every exporter belongs to one, and only its workers send for
 *   the exporter (`sending/collector-workers.ts`)
 * - worker: a process with the role `worker`, which hands out, sends and sweeps as a host does, but takes the settings that a host has stored, and
 *   removes no old rows; or what sends for one collector within a process (`sending/delivery-worker.ts`)
 * - vendor: the name under which messages are sent, as in `X-<vendor>-Event` (`messages/signature.ts`)
 * - receiver: the server that an exporter's URL leads to; trust: how far its certificate is checked (`setting-values.ts`)
 * - operator: who runs the deployment, as opposed to an owner; the operators of a filter are `=`, `in` and the like (`events/filter.ts`)
 * - pages: those of the admin console (`plugins/admin-console`)
 *
 * What is sent:
 * - event: something that happened, accepted once, its body frozen as text (`events/new-event.ts`); its kind says what a body looks like
 *   (`events/event-kinds.ts`)
 * - exporter: a configured receiver (`exporters/exporter.ts`)
 * - investigation: a case that a security product has opened; the event kind `idr_investigation_created` tells of one
 * - type (export type): which investigations an exporter may get (`setting-values.ts`)
 * - subscription: kinds and filter of an exporter, by which it chooses events (`events/subscription.ts`); an event is routed to all exporters that
 *   choose it
 * - subscriber: an exporter with an owner, kinds, a filter or a format, so that each event is decided for it alone; all others get events by their
 *   type only; recipient: an exporter that an event goes to, subscriber or not (`events/new-event.ts`)
 * - revision: how often subscribers have changed; an event that was routed by an older revision is routed again
 * - format: the form of a body, for example `slack`; template: a format that a person has written; message: what a format has made of an
 *   event, or its own body, with the headers (`messages/formatted-message.ts`); signature form: how the signature is written (`messages/signature.ts`)
 * - owner: the application's customer to whom an exporter or event belongs; none for the deployment's own (`exporters/owner-limits.ts`)
 * - delivery: one event on its way to one exporter (`deliveries/delivery-store.ts`)
 * - attempt: one POST of a delivery; outcome: what it came to (`outcomes/outcome.ts`); refused response: an answer that is no 2xx
 * - taken: what a receiver has answered with a 2xx in time
 * - fault: the outcome `interrupted`, which says nothing of the receiver: the claim of the attempt ran out; its process stopped, died or had an
 *   unforeseen error; or meanwhile its exporter was removed, its event erased, or an earlier attempt of its delivery taken
 * - try: an attempt that counts in the retry schedule, which is any but an interrupted one; first try (said of the delivery): one that waits for its
 *   first try since it was accepted, or replayed singly; retry (said of the delivery): one that waits for a later try, or was replayed among many
 * - test: an event for one exporter alone, sent when that is changed, or when somebody asks for it
 * - single attempt: all that a delivery with a `test` gets, whatever comes of it
 * - ended: in a final state; active: `pending`, `queued` or `sending`. A `held` delivery is neither (`deliveries/delivery-states.ts`)
 * - held: accepted for an exporter that an outcome has stopped; sent once it is replayed. The flag `holds` of a store is about this state; `hold` of
 *   `afterExhausted` is not, but about order keys that wait (`setting-values.ts`)
 * - order key: what events have in common that an ordered exporter gets one after another; a delivery blocks its key while later ones wait for it
 * - exhausted: has had all tries of its schedule, or failed in a way that is not tried again
 * - poisoned: set aside, since its attempts seem to end the processes that make them
 * - replay: a delivery, or many of an exporter, sent once more by a new retry schedule (`deliveries/replays.ts`)
 * - notice: what became of an exporter, published as an event and emitted to the application (`events/exporter-notices.ts`)
 * - emitted event (`WebhookEvent`): what this engine tells the application that it runs in, by calling its `onEvent`, for example a `DeliveryEvent`; it
 *   is sent to no receiver (`observing/emitted-events.ts`)
 *
 * Who may send it, and when:
 * - hand out: to mark a delivery `queued` and give its job to the queue; `accept` does so at once where there is room, and dispatch
 *   (`dispatching/dispatcher.ts`) for what is due in the rows
 * - job: what tells a worker to send one delivery (`dispatching/delivery-queue.ts`); entry: what a queue server keeps, with one job or several
 * - turn: one of the parts in which jobs are added to the queue where all at once would be too many (`dispatching/turns.ts`)
 * - window: how many deliveries of an exporter may be in flight, `queued` or `sending`; place: one of these, free or not; room: the free places
 * - slot: what one attempt at a time needs of a worker, which has as many as its `concurrency`; a collector has the slots of all its workers together
 * - slot shares: how many of the slots each exporter of a collector may have, so that one slow receiver cannot take all; share group: the slow
 *   exporters of a collector, or the quick ones, which share among themselves (`dispatching/slot-shares.ts`)
 * - claim: the lease of a delivery for one attempt, so that nobody else sends the same (`deliveries/delivery-store.ts`)
 * - reservation: a claim made in advance, when a delivery is handed out, so that the worker that gets its job in time need not ask the store for one
 *   (`dispatching/reservations.ts`)
 * - session: a process that claims, for as long as its heartbeats come; its claims end with it (`dispatching/worker-session.ts`)
 * - sweep: to find claims that ran out or whose sessions have ended, reservations under which no attempt has begun, and jobs that the queue has lost
 * - breaker: open after failures in a row; probe: the one delivery that an open one lets through at a time; slow start: the time
 *   after a probe that was taken, in which the window grows (`outcomes/breaker.ts`)
 * - pause: either the time for which a receiver wants to be left alone (429, `Retry-After`), during which the breaker is `paused`; or that a person
 *   has an exporter wait (`pausedAt`). An exporter of which either is true is paused
 * - generation: of the deployment, how often its settings have changed (`deployment-settings.ts`); of an exporter, a number that rises with every
 *   change that decides what is sent to its receiver, or whether
 * - sealed: encrypted for one exporter by the key ring; unseal, or open: decrypt; reseal, or seal anew: seal with the ring's current key what another
 *   key has sealed; sealing context: a text that names what it was sealed for, without which it cannot be unsealed
 * - body memory: how many bytes of bodies a process may hold at once, which its byte budget shares among exporters; allowance: what of it an
 *   exporter may take now (`sending/byte-budget.ts`)
 */

export type { ApplicationSchema, JoiSchema, StandardSchema } from '../application-schema.ts';
export { type EgressGuard, type EgressPolicy, egressGuard } from '../egress/guard.ts';
export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { timestamp } from '../timestamp.ts';
export type { AttemptFilter, AttemptLists, AttemptQuery, AttemptStore, ListedAttempt } from './deliveries/attempt-lists.ts';
export type { Deliveries, DeliveryHistory, ErasedEvent, Events } from './deliveries/deliveries.ts';
export type { DeliveryState } from './deliveries/delivery-states.ts';
export type * from './deliveries/delivery-store.ts';
export type { Deployment, DeploymentSettings, Role, SettingsStore } from './deployment-settings.ts';
export type * from './dispatching/delivery-queue.ts';
// By a star, so that an application can add to what is in it.
export type * from './events/event-body-types.ts';
export type { EventKind, EventKinds } from './events/event-kinds.ts';
export type { Condition, FailedCondition, Filter, FilterOp, Scalar } from './events/filter.ts';
export type { Publish, PublishedEvent } from './events/publisher.ts';
export type { Subscription, SubscriptionVerdict } from './events/subscription.ts';
export type { PublishOptions } from './events/unrouted-event.ts';
export type * from './exporters/authentication.ts';
export type {
    CheckedExporterSettings,
    Exporter,
    ExporterSettings,
    NewExporterSettings,
    PreviousSecret,
    StoredExporter,
    StoredSettings,
} from './exporters/exporter.ts';
export type { Backlog, BacklogAge, Breaker, ExporterHealth, Overview, ShownExporter } from './exporters/exporter-health.ts';
export type { ChangedExporter, CreatedExporter, Exporters, StartedExporter } from './exporters/exporter-operations.ts';
export type { ExporterChanges, ExporterPatch } from './exporters/exporter-patch.ts';
export type { DraftPreview, ExplainOptions, ExporterDraft, ExporterQuestions } from './exporters/exporter-preview.ts';
export type { OwnerLimits, OwnerSettings } from './exporters/owner-limits.ts';
export type { ReceiverWarning } from './exporters/receiver-url.ts';
export type { TestResult } from './exporters/test-event.ts';
export type {
    Format,
    FormatEvent,
    FormatSecret,
    FormatSettings,
    Formatted,
} from './formats/format.ts';
export { SECRET_PLACEHOLDER } from './formats/format-secret.ts';
export type { HeaderChanges, HeaderPairs } from './messages/message-headers.ts';
export type { Diagnosis, Doctor } from './observing/doctor.ts';
export {
    type AcceptanceEvent,
    DELIVERY_EVENTS,
    type DeliveryEvent,
    EXPORTER_EVENTS,
    type ExporterEvent,
    type LogLine,
    logLines,
    type WebhookEvent,
} from './observing/emitted-events.ts';
export type { Finding, FindingPart } from './observing/finding.ts';
export { type MetricsOptions, type MetricsRegistry, type WebhookMetrics, webhookMetrics } from './observing/metrics.ts';
export type { Readiness, UnreadyReason } from './observing/readiness.ts';
export { type Tracing, type TracingOptions, webhookTracing } from './observing/tracing.ts';
export type { CloseOptions, WebhookStores, WebhooksOptions, WebhooksSettings, WorkerOptions } from './options.ts';
export { OUTCOME_CODES, type Outcome, type OutcomeCode, type PresentedCertificate, type Timings } from './outcomes/outcome.ts';
export type { AnsweredAttempt, AttemptResponse, ResponseBody, ResponseStore } from './outcomes/response-bodies.ts';
export { DEFAULT_SCHEDULE } from './outcomes/retry-schedule.ts';
export type { RefusedResponse } from './sending/http-exchange.ts';
export type * from './sending/http-sender.ts';
export { httpSender } from './sending/http-sender.ts';
export type { ExportType, FormatName, RuleSet, SignatureForm, Trust } from './setting-values.ts';
export { type Webhooks, webhooks } from './webhooks.ts';
