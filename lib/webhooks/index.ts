export { type EgressGuard, egressGuard } from '../egress/guard.ts';
export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { timestamp } from '../timestamp.ts';
export type { ExportType, RuleSet, SignatureForm, Trust } from './choices.ts';
export type { Deliveries, DeliveryHistory } from './deliveries.ts';
export type { EventKind, EventKinds } from './events.ts';
export type * from './exporter.ts';
export type { ChangedExporter, Exporters, TestResult } from './exporters.ts';
export type * from './http-sender.ts';
export { httpSender } from './http-sender.ts';
export { OUTCOME_CODES, type Outcome, type OutcomeCode, type Timings } from './outcome.ts';
export type { Publish, PublishOptions } from './publisher.ts';
export type * from './queue.ts';
export { DEFAULT_SCHEDULE } from './schedule.ts';
export type * from './store.ts';
export {
    type WebhookStores,
    type Webhooks,
    type WebhooksOptions,
    type WebhooksSettings,
    type WorkerOptions,
    webhooks,
} from './webhooks.ts';
