import Joi from 'joi';
import { nameSchema } from '../../lib/checked.ts';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { workspaceSchema } from '../../lib/inventory/resources.ts';
import { newKeySchema, scopesSchema, workspacesSchema } from '../../lib/keys/limits.ts';
import { DEFAULT_SCOPES } from '../../lib/keys/scopes.ts';
import { AUTHENTICATION_PARTS } from '../../lib/webhooks/authentication.ts';
import { EXPORT_TYPES, RULE_SETS } from '../../lib/webhooks/choices.ts';
import { deliveryFilterSchema, deliveryQuerySchema } from '../../lib/webhooks/deliveries.ts';
import { FINDING_PARTS, FINDING_STATES } from '../../lib/webhooks/doctor.ts';
import { exporterChangesSchema, newExporterSchema, ownerSchema, settingSchemas } from '../../lib/webhooks/exporter.ts';
import { BACKLOG_AGES, BREAKERS, MAX_COUNTED } from '../../lib/webhooks/exporter-health.ts';
import { OUTCOME_CODES } from '../../lib/webhooks/outcome.ts';
import { replaySchema } from '../../lib/webhooks/replays.ts';
import type { OperationName } from './operations.ts';

/** What an operation accepts and answers with over HTTP, as its route is checked and documented. */
export interface OperationSchemas {
    readonly description: string;
    readonly params?: Joi.ObjectSchema;
    readonly query?: Joi.ObjectSchema;
    readonly payload?: Joi.ObjectSchema;
    readonly response: Joi.Schema;
}

/** The body of every refusal. */
export const errorSchema: Joi.ObjectSchema = Joi.object({
    error: Joi.object({
        code: Joi.string().required().description('Stable, for programs').example('INVALID_INPUT'),
        field: Joi.string().description('Path of the field that is at fault').example('url'),
        message: Joi.string().required().description('One sentence for people'),
    }).required(),
}).label('Error');

const id = (): Joi.StringSchema => Joi.string().required();
const { count, time: date, text, nullableText } = FIELD_SCHEMAS;
const nullableCount = (): Joi.NumberSchema => count().allow(null);
const flag = (): Joi.BooleanSchema => Joi.boolean().required();
const nullableDate = (): Joi.DateSchema => date().allow(null);
const yes = (): Joi.BooleanSchema => flag().valid(true);

const byId = Joi.object({ id: id().description('Id as lists show it') });
const withStart = (settings: Joi.ObjectSchema): Joi.ObjectSchema =>
    settings.keys({ start: Joi.boolean().description('Starts it too, which sends a test event') });

const revealedKeySchema = Joi.object({
    id: id(),
    name: text(),
    key: id().description('The key itself, for the header `token`').example('scw_QfO4IXtQ…'),
}).label('RevealedApiKey');

const keySummarySchema = Joi.object({
    id: id(),
    name: text(),
    start: id().description('First characters of the key'),
    revealable: flag().description('Whether the key can be shown again'),
    scopes: scopesSchema.required().description('What the key may do'),
    workspaces: workspacesSchema.required().allow(null).description('Ids of the only workspaces that it sees; null for all'),
    createdAt: date(),
    expiresAt: nullableDate().description('From when on it is refused; null for never'),
    expired: flag(),
    lastUsedAt: nullableDate().description('Exact to a minute'),
    revokedAt: nullableDate(),
}).label('ApiKey');

const timingsSchema = Joi.object({
    dns: nullableCount(),
    connect: nullableCount(),
    tls: nullableCount(),
    firstByte: nullableCount(),
    total: count(),
}).description('Milliseconds; null for a phase that was not reached or not needed');

const attemptSchema = Joi.object({
    number: count().description('From 1'),
    startedAt: date(),
    finishedAt: nullableDate().description('Null, like all below, while it is under way'),
    code: Joi.string()
        .valid(...OUTCOME_CODES)
        .allow(null)
        .required(),
    status: nullableCount().description('HTTP status of the receiver'),
    detail: nullableText().description('One sentence for people'),
    retryAfter: nullableCount().description('Milliseconds that the receiver asked to wait'),
    timings: timingsSchema.allow(null).required(),
    address: nullableText().description('Address that was called'),
    fingerprint: nullableText().description('SHA-256 fingerprint of the certificate that was presented'),
    certificate: Joi.object({ issuer: text(), expiresAt: date() })
        .allow(null)
        .required()
        .description('Of the certificate that was presented, where the attempt has made its connection'),
    late: flag().description('Its claim had run out by then: another attempt may have sent the same message'),
}).label('Attempt');

const testSchema = Joi.object({
    deliveryId: id(),
    attempt: attemptSchema.allow(null).required().description('Null when it had no outcome in the time that it was waited for'),
}).label('Test');

const { schedule: _, ...shownSettings } = settingSchemas;

const diagnosisSchema = Joi.object({
    healthy: flag().description('Whether nothing is wrong; a warning is no fault'),
    findings: Joi.array()
        .items(
            Joi.object({
                part: Joi.string()
                    .valid(...FINDING_PARTS)
                    .required()
                    .description('What was looked at; what needs another comes after it'),
                state: Joi.string()
                    .valid(...FINDING_STATES)
                    .required(),
                text: text().description('One sentence for people'),
                advice: nullableText().description('What to do about it'),
            }).label('Finding'),
        )
        .required(),
}).label('Diagnosis');

const exporterSchema = Joi.object({
    id: id(),
    ...Object.fromEntries(Object.entries(shownSettings).map(([name, rule]) => [name, rule.required()])),
    url: id().description('Scheme, host and port of the receiver, then `/…` for what may hold a token').example('https://example.com/…'),
    type: Joi.string()
        .valid(...EXPORT_TYPES)
        .required(),
    legacy: flag(),
    owner: nullableText().description('Whose it is: it gets events of this owner only'),
    headerNames: Joi.array().items(Joi.string()).required().description('Names of its additional headers; their values are not shown'),
    authentication: Joi.array()
        .items(Joi.string().valid(...AUTHENTICATION_PARTS))
        .required()
        .description('What it authenticates by besides; the credentials are not shown'),
    state: Joi.string().valid('running', 'stopped').required(),
    stopReason: nullableText().description('Why it stopped by itself'),
    pausedAt: nullableDate().description('Since when somebody has it paused; null unless it is'),
    consecutiveFailures: count(),
    createdAt: date(),
    updatedAt: date(),
}).label('Exporter');

const backlogSchema = Joi.object({
    waiting: count(),
    more: flag().description('Whether more wait than were counted'),
    oldest: nullableDate().description('Since when the oldest of those counted waits'),
    ages: Joi.object(Object.fromEntries(BACKLOG_AGES.map(([age]) => [age, count()])))
        .required()
        .description('How many of those counted are of each age'),
}).description('Deliveries that wait for their time or for room');

const healthSchema = Joi.object({
    at: date(),
    breaker: Joi.string()
        .valid(...BREAKERS)
        .required()
        .description('`closed` when it is sent to as usual'),
    failingSince: nullableDate().description('First failure, or first pause, since the last success'),
    nextProbe: nullableDate().description('From when on it gets a probe; null when it gets more than that'),
    pausedUntil: nullableDate().description('Until when it wants to be left alone'),
    stopsAt: nullableDate().description('A failure from then on stops it'),
    lastOutcome: Joi.object({ code: attemptSchema.extract('code'), detail: text(), at: date() })
        .allow(null)
        .required()
        .description('What the receiver did last, exact to a second'),
    inFlight: count().description('Deliveries in the queue or being sent'),
    backlog: backlogSchema.required(),
})
    .required()
    .label('ExporterHealth')
    .description('How it fares, by the clock of the store');

const shownExporterSchema = exporterSchema.keys({ health: healthSchema }).label('ShownExporter');

const warningsSchema = Joi.array()
    .items(Joi.object({ code: Joi.string().required().example('plain_http'), message: text() }).label('ReceiverWarning'))
    .required()
    .description('What is doubtful about its receiver');

const testedExporterSchema = exporterSchema.keys({ test: testSchema.required(), warnings: warningsSchema }).label('TestedExporter');

const deliverySchema = Joi.object({
    id: id(),
    eventId: id().description('Message id on every try'),
    kind: id(),
    exporterId: id(),
    collector: id(),
    state: deliveryQuerySchema.extract('state').required(),
    attempts: count().description('Number of attempts so far'),
    dueAt: date(),
    createdAt: date(),
    finishedAt: nullableDate(),
    lastCode: attemptSchema.extract('code').description('Outcome of the last attempt that has one'),
}).label('Delivery');

const replayViewSchema = Joi.object({
    id: id(),
    exporterId: id(),
    failedSince: nullableDate().description('Null for a replay of what was held'),
    rate: count().description('Deliveries a second'),
    total: count().description('How many there were when it was planned'),
    done: count(),
    state: Joi.string().valid('running', 'done', 'cancelled').required(),
    createdAt: date(),
    finishedAt: nullableDate(),
}).label('Replay');

/** What the answer to a dry run lacks. */
const UNPLANNED = ['id', 'exporterId', 'failedSince', 'rate', 'done', 'state', 'createdAt', 'finishedAt'];

const eventSchema = Joi.object({
    id: id(),
    kind: id(),
    createdAt: date(),
    erasedAt: nullableDate().description('When its body was erased; null while it is there'),
}).label('Event');

const deliveryViewSchema = deliverySchema.keys({ history: Joi.array().items(attemptSchema).required() }).label('DeliveryWithAttempts');

const licenseSchema = Joi.object({
    holder: nullableText().description('Null, like the times, unless the signature is right'),
    notBefore: nullableDate(),
    expires: nullableDate(),
    valid: flag(),
    reason: nullableText().description('Why it is not valid'),
}).label('License');

const newEventSchema = Joi.object({
    body: Joi.object().unknown().required().description('Body of the event, as its kind wants it'),
    rules: Joi.string()
        .valid(...RULE_SETS)
        .description('Rule set that raised an investigation'),
    owner: ownerSchema.description("Whose event it is; the deployment's own when absent"),
}).required();

const countsSchema = Joi.object({ created: count(), updated: count() }).required();

/** The schemas of every operation. What a setting of an exporter or a body may be is the rule of the library, which checks it again. */
export const schemas: Readonly<Record<OperationName, OperationSchemas>> = {
    createKey: {
        description: 'Makes a key of the REST API and shows it',
        payload: Joi.object({
            name: nameSchema.trim().required().description('Need not be unique'),
            scopes: scopesSchema.min(1).description(`What the key may do; ${DEFAULT_SCOPES.join(', ')} when nothing is said`),
            workspaces: newKeySchema.extract('workspaces').description('Ids of the only workspaces that it sees; all when nothing is said'),
            expiresAt: newKeySchema.extract('expiresAt').description('From when on it is refused; never when nothing is said'),
        }),
        response: revealedKeySchema,
    },
    listKeys: { description: 'All keys, revoked ones included, oldest first', response: Joi.array().items(keySummarySchema) },
    revealKey: { description: 'Shows a key again', params: byId, response: revealedKeySchema },
    revokeKey: { description: 'Refuses a key from now on, for good', params: byId, response: Joi.object({ id: id(), revoked: yes() }) },

    createExporter: {
        description: 'Configures a receiver; answers with the signing secret as well',
        payload: withStart(newExporterSchema),
        response: exporterSchema
            .keys({ secret: id().description('Signing secret'), test: testSchema, warnings: warningsSchema })
            .label('CreatedExporter'),
    },
    listExporters: { description: 'All exporters, oldest first', response: Joi.array().items(exporterSchema) },
    showExporter: {
        description: 'One exporter and how it fares',
        params: byId,
        query: Joi.object({ showUrl: Joi.boolean().description('With the whole URL of its receiver, which may hold a token') }),
        response: shownExporterSchema,
    },
    updateExporter: {
        description: 'Changes settings of an exporter and sends a test event',
        params: byId,
        payload: withStart(exporterChangesSchema),
        response: testedExporterSchema,
    },
    startExporter: { description: 'Starts an exporter and sends a test event', params: byId, response: testedExporterSchema },
    stopExporter: { description: 'Stops an exporter; what was accepted waits', params: byId, response: testedExporterSchema },
    pauseExporter: { description: 'Pauses an exporter; what is accepted for it waits', params: byId, response: exporterSchema },
    resumeExporter: { description: 'Resumes an exporter; what waits is sent', params: byId, response: exporterSchema },
    testExporter: { description: 'Sends a test event and waits for its outcome', params: byId, response: testSchema },
    removeExporter: {
        description: 'Removes an exporter with its secrets; its unfinished deliveries are cancelled',
        params: byId,
        response: Joi.object({ id: id(), removed: yes() }),
    },

    publishEvent: {
        description: 'Accepts an event for all running exporters that want it',
        params: Joi.object({ kind: id().description('Event kind').example('idr_investigation_created') }),
        payload: newEventSchema.keys({
            idempotencyKey: Joi.string().max(200).description('Of the caller: repeated with it, an event is accepted once'),
        }),
        response: Joi.object({ eventId: id(), deliveries: Joi.array().items(Joi.string()).required() }).label('Accepted'),
    },
    explainExporter: {
        description: 'Whether an exporter gets an event, and if not, why not',
        params: byId,
        payload: newEventSchema.keys({ kind: id() }),
        response: Joi.object({ wanted: flag(), reason: text().optional() }).label('Choice'),
    },
    previewExporter: {
        description: 'What would be sent of an event to an exporter',
        params: byId,
        payload: Joi.object({ kind: id(), body: newEventSchema.extract('body') }).required(),
        response: Joi.object({
            headers: Joi.array()
                .items(Joi.array().items(Joi.string().allow('')))
                .required()
                .description('What is secret in them is masked'),
            body: text(),
        }).label('Preview'),
    },

    showEvent: { description: 'An event without its body', params: byId, response: eventSchema },
    eraseEvent: {
        description: 'Erases the body of an event for good; its unfinished deliveries end as `erased`',
        params: byId,
        response: eventSchema.keys({ ended: count().description('Deliveries that have ended by this') }).label('ErasedEvent'),
    },
    listDeliveries: {
        description: 'Deliveries, newest first',
        query: deliveryQuerySchema,
        response: Joi.array().items(deliverySchema),
    },
    countDeliveries: {
        description: 'How many deliveries there are of those that a list would have',
        query: deliveryFilterSchema,
        response: Joi.object({
            count: count().max(MAX_COUNTED),
            more: flag().description('Whether there are more than were counted'),
        }).label('DeliveryCount'),
    },
    showDelivery: { description: 'A delivery with its attempts', params: byId, response: deliveryViewSchema },
    replayDelivery: { description: 'Sends a finished delivery once more', params: byId, response: deliverySchema },

    beginReplay: {
        description: 'Begins to send what an exporter was sent in vain, or what is held for it',
        payload: (replaySchema as Joi.ObjectSchema).keys({
            dryRun: Joi.boolean().description('Only says how many deliveries that would be'),
        }),
        response: replayViewSchema.fork(UNPLANNED, (field) => field.optional()).label('PlannedReplay'),
    },
    listReplays: { description: 'The newest 100 replays, newest first', response: Joi.array().items(replayViewSchema) },
    cancelReplay: { description: 'Ends a replay; what has been replayed by then goes on', params: byId, response: replayViewSchema },

    diagnose: { description: 'What publishing and sending need, looked at one after the other', response: diagnosisSchema },
    diagnoseExporter: {
        description: 'The same, and the receiver of an exporter step by step, to which a test is sent',
        params: byId,
        response: diagnosisSchema,
    },

    showLicense: { description: 'The installed licence', response: licenseSchema },
    installLicense: {
        description: 'Installs a signed licence',
        payload: Joi.object({ text: Joi.string().required().description('The licence, one line of text') }).required(),
        response: licenseSchema,
    },
    trustLicense: {
        description: 'Sets the key that licences are checked with',
        payload: Joi.object({ text: Joi.string().required().description('Ed25519 public key in PEM form') }).required(),
        response: licenseSchema,
    },

    importScan: {
        description: 'Imports a scan, nmap XML or JSON lines of hosts: all hosts of it or none',
        query: Joi.object({ workspace: nameSchema.trim().required().description('Workspace to import into, made when missing') }),
        response: Joi.object({ workspace: workspaceSchema.required(), hosts: countsSchema, services: countsSchema }).label('Imported'),
    },
    migrate: {
        description: 'Brings the database up to this version',
        response: Joi.object({ applied: Joi.array().items(Joi.string()).required().description('Migrations that ran now') }),
    },
};
