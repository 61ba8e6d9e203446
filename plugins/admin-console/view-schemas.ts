import Joi from 'joi';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { VERDICTS } from '../../lib/inventory/import-counts.ts';
import { scopesSchema, workspacesSchema } from '../../lib/keys/limits.ts';
import { MAX_OF_SLICE } from '../../lib/webhooks/deliveries/activity.ts';
import { deliveryQuerySchema } from '../../lib/webhooks/deliveries/deliveries.ts';
import { AUTHENTICATION_PARTS } from '../../lib/webhooks/exporters/authentication.ts';
import { ownerSchema, settingSchemas } from '../../lib/webhooks/exporters/exporter.ts';
import { BACKLOG_AGES, BREAKERS } from '../../lib/webhooks/exporters/exporter-health.ts';
import { MAX_OF_EACH } from '../../lib/webhooks/exporters/exporter-lists.ts';
import { FINDING_PARTS, FINDING_STATES } from '../../lib/webhooks/observing/doctor.ts';
import { OUTCOME_CODES } from '../../lib/webhooks/outcomes/outcome.ts';
import { EXPORT_TYPES, RULE_SETS } from '../../lib/webhooks/setting-values.ts';

/* What operations answer with, and what several of them take, as their routes are checked and documented. */

/** An id, or another text that is not empty. */
export const id = (): Joi.StringSchema => Joi.string().required();
const { count, time: date, text, nullableText } = FIELD_SCHEMAS;
const nullableCount = (): Joi.NumberSchema => count.allow(null);
/** True or false. */
export const flag = (): Joi.BooleanSchema => Joi.boolean().required();
const nullableDate = (): Joi.DateSchema => date.allow(null);
/** True. */
export const yes = (): Joi.BooleanSchema => flag().valid(true);

/** Input of an operation on one of several. */
export const byId: Joi.ObjectSchema = Joi.object({ id: id().description('Id as lists show it') });
/** Settings of an exporter, and whether it is started. */
export const withStart = (settings: Joi.ObjectSchema): Joi.ObjectSchema =>
    settings.keys({ start: Joi.boolean().description('Starts it too, which sends a test event') });

const waitSchema = Joi.boolean().description('Whether the outcome of the test is waited for; true when nothing is said');

/** Of what sends a test and has nothing else to say. */
export const testOptionsSchema: Joi.ObjectSchema = Joi.object({ wait: waitSchema }).allow(null);

/** What changes settings, and sends a test. */
export const withWait = (settings: Joi.ObjectSchema): Joi.ObjectSchema => settings.keys({ wait: waitSchema });

export const revealedKeySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    name: text,
    key: id().description('The key itself, for the header `token`').example('scw_QfO4IXtQ…'),
}).label('RevealedApiKey');

export const keySummarySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    name: text,
    start: id().description('First characters of the key'),
    revealable: flag().description('Whether the key can be shown again'),
    scopes: scopesSchema.required().description('What the key may do'),
    workspaces: workspacesSchema.required().allow(null).description('Ids of the only workspaces that it sees; null for all'),
    createdAt: date,
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
    total: count,
}).description('Milliseconds; null for a phase that was not reached or not needed');

const responseBodySchema = Joi.object({
    text: nullableText.description(
        'At most 1,024 bytes, what was secret in the message masked; null for what is no text, or is compressed',
    ),
    bytes: count.description('How many were read of it'),
    truncated: flag().description('Whether it goes on'),
}).description('What the receiver answered, where that was no 2xx and is kept: text from outside');

const attemptSchema = Joi.object({
    number: count.description('From 1'),
    startedAt: date,
    finishedAt: nullableDate().description('Null, like all below, while it is under way'),
    code: Joi.string()
        .valid(...OUTCOME_CODES)
        .allow(null)
        .required(),
    status: nullableCount().description('HTTP status of the receiver'),
    detail: nullableText.description('One sentence for people'),
    retryAfter: nullableCount().description('Milliseconds that the receiver asked to wait'),
    timings: timingsSchema.allow(null).required(),
    address: nullableText.description('Address that was called'),
    fingerprint: nullableText.description('SHA-256 fingerprint of the certificate that was presented'),
    certificate: Joi.object({ issuer: text, expiresAt: date })
        .allow(null)
        .required()
        .description('Of the certificate that was presented, where the attempt has made its connection'),
    late: flag().description('Its claim had run out by then: another attempt may have sent the same message'),
    responseBody: responseBodySchema.allow(null).required(),
}).label('Attempt');

export const testSchema: Joi.ObjectSchema = Joi.object({
    deliveryId: id(),
    attempt: attemptSchema.allow(null).required().description('Null when it had no outcome in the time that it was waited for'),
}).label('Test');

const { schedule: _, ...shownSettings } = settingSchemas;

export const diagnosisSchema: Joi.ObjectSchema = Joi.object({
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
                code: Joi.string().description('What it says, for programs; absent of a receiver'),
                values: Joi.array().items(Joi.string().allow('')).description('What is filled into the words of the code'),
                text: text.description('One sentence for people'),
                advice: nullableText.description('What to do about it'),
            }).label('Finding'),
        )
        .required(),
}).label('Diagnosis');

export const exporterSchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    ...Object.fromEntries(Object.entries(shownSettings).map(([name, rule]) => [name, rule.required()])),
    url: id().description('Scheme, host and port of the receiver, then `/…` for what may hold a token').example('https://example.com/…'),
    type: Joi.string()
        .valid(...EXPORT_TYPES)
        .required(),
    legacy: flag(),
    owner: nullableText.description('Whose it is: it gets events of this owner only'),
    headerNames: Joi.array().items(Joi.string()).required().description('Names of its additional headers; their values are not shown'),
    authentication: Joi.array()
        .items(Joi.string().valid(...AUTHENTICATION_PARTS))
        .required()
        .description('What it authenticates by besides; the credentials are not shown'),
    state: Joi.string().valid('running', 'stopped').required(),
    stopReason: nullableText.description('Why it stopped by itself'),
    pausedAt: nullableDate().description('Since when somebody has it paused; null unless it is'),
    consecutiveFailures: count,
    createdAt: date,
    updatedAt: date,
}).label('Exporter');

const SUMMARIZED = ['id', 'name', 'collector', 'owner', 'state', 'stopReason', 'pausedAt', 'consecutiveFailures'] as const;

export const exporterSummarySchema: Joi.ObjectSchema = Joi.object(
    Object.fromEntries(SUMMARIZED.map((field) => [field, exporterSchema.extract(field)])),
).label('ExporterSummary');

const backlogSchema = Joi.object({
    waiting: count,
    more: flag().description('Whether more wait than were counted'),
    oldest: nullableDate().description('Since when the oldest of those counted waits'),
    ages: Joi.object(Object.fromEntries(BACKLOG_AGES.map(([age]) => [age, count])))
        .required()
        .description('How many of those counted are of each age'),
}).description('Deliveries that wait for their time or for room');

const healthSchema = Joi.object({
    at: date,
    breaker: Joi.string()
        .valid(...BREAKERS)
        .required()
        .description('`closed` when it is sent to as usual'),
    failingSince: nullableDate().description('First failure, or first pause, since the last success'),
    nextProbe: nullableDate().description('From when on it gets a probe; null when it gets more than that'),
    pausedUntil: nullableDate().description('Until when it wants to be left alone'),
    stopsAt: nullableDate().description('A failure from then on stops it'),
    lastOutcome: Joi.object({ code: attemptSchema.extract('code'), detail: text, at: date })
        .allow(null)
        .required()
        .description('What the receiver did last, exact to a second'),
    inFlight: count.description('Deliveries in the queue or being sent'),
    backlog: backlogSchema.required(),
})
    .required()
    .label('ExporterHealth')
    .description('How it fares, by the clock of the store');

export const shownExporterSchema: Joi.ObjectSchema = exporterSchema.keys({ health: healthSchema }).label('ShownExporter');

export const warningsSchema: Joi.ArraySchema = Joi.array()
    .items(Joi.object({ code: Joi.string().required().example('plain_http'), message: text }).label('ReceiverWarning'))
    .required()
    .description('What is doubtful about its receiver');

export const testedExporterSchema: Joi.ObjectSchema = exporterSchema
    .keys({ test: testSchema.required(), warnings: warningsSchema })
    .label('TestedExporter');

export const deliverySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    eventId: id().description('Message id on every try'),
    kind: id(),
    exporterId: id(),
    collector: id(),
    state: deliveryQuerySchema.extract('state').required(),
    attempts: count.description('Number of attempts so far'),
    dueAt: date,
    createdAt: date,
    finishedAt: nullableDate(),
    lastCode: attemptSchema.extract('code').description('Outcome of the last attempt that has one'),
}).label('Delivery');

const latency = (): Joi.NumberSchema => Joi.number().min(0).required();

const sliceFields = (max: number): Joi.SchemaMap => ({
    since: date,
    until: date,
    deliveries: count.max(max).description('Those that were accepted in it, the newest where there are more'),
    more: flag().description('Whether there may be more than were looked at'),
    delivered: count.description('Of these'),
    failed: count.description('Of these, those whose last attempt came to anything but `delivered`'),
});

export const pagedExporterSchema: Joi.ObjectSchema = shownExporterSchema
    .keys({
        day: Joi.array()
            .items(Joi.object(sliceFields(MAX_OF_EACH)).label('DaySlice'))
            .allow(null)
            .required()
            .description('What became of its deliveries within a day, in slices of three hours; null where the store does not tell'),
    })
    .label('PagedExporter');

export const activitySchema: Joi.ObjectSchema = Joi.object({
    at: date,
    slices: Joi.array()
        .items(
            Joi.object({
                ...sliceFields(MAX_OF_SLICE),
                latency: Joi.object({ p50: latency(), p95: latency() })
                    .allow(null)
                    .required()
                    .description(
                        'Milliseconds from acceptance to delivery within which half, and 19 of 20, were delivered; null without any',
                    ),
            }).label('ActivitySlice'),
        )
        .required()
        .description('First to last; the last one is not over'),
}).label('Activity');

export const replayViewSchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    exporterId: id(),
    failedSince: nullableDate().description('Null for a replay of what was held'),
    rate: count.description('Deliveries a second'),
    total: count.description('How many there were when it was planned'),
    done: count,
    state: Joi.string().valid('running', 'done', 'cancelled').required(),
    createdAt: date,
    finishedAt: nullableDate(),
}).label('Replay');

/** What the answer to a dry run lacks. */
export const UNPLANNED: string[] = ['id', 'exporterId', 'failedSince', 'rate', 'done', 'state', 'createdAt', 'finishedAt'];

export const eventSchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    kind: id(),
    createdAt: date,
    erasedAt: nullableDate().description('When its body was erased; null while it is there'),
}).label('Event');

export const deliveryViewSchema: Joi.ObjectSchema = deliverySchema
    .keys({
        history: Joi.array().items(attemptSchema).required(),
        progress: timingsSchema.allow(null).required().description('Of a test that the answering process is sending, so far; else null'),
    })
    .label('DeliveryWithAttempts');

export const maskedHeadersSchema: Joi.ArraySchema = Joi.array()
    .items(Joi.array().items(Joi.string().allow('')))
    .description('Pairs of name and value; what is secret in them is masked');

export const messageSchema: Joi.ObjectSchema = Joi.object({
    body: nullableText.description(
        'As it is sent, but for the secret of a format, which is masked; null once it was erased or where it could not be made',
    ),
    bytes: nullableCount().description('How many are sent; null where `body` is'),
    headers: maskedHeadersSchema
        .allow(null)
        .required()
        .description('As the last attempt sends them with the settings that its exporter has now; null where nothing is sent'),
    erasedAt: nullableDate().description('When its body was erased'),
    failure: nullableText.description('Why it could not be made'),
}).label('Message');

export const licenseSchema: Joi.ObjectSchema = Joi.object({
    holder: nullableText.description('Null, like the times, unless the signature is right'),
    notBefore: nullableDate(),
    expires: nullableDate(),
    valid: flag(),
    reason: nullableText.description('Why it is not valid'),
}).label('License');

export const newEventSchema: Joi.ObjectSchema = Joi.object({
    body: Joi.object().unknown().required().description('Body of the event, as its kind wants it'),
    rules: Joi.string()
        .valid(...RULE_SETS)
        .description('Rule set that raised an investigation'),
    owner: ownerSchema.description("Whose event it is; the deployment's own when absent"),
}).required();

export const countsSchema: Joi.ObjectSchema = Joi.object(Object.fromEntries(VERDICTS.map((verdict) => [verdict, count]))).required();

export const auditEntrySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    at: date.description('When it began'),
    actor: text.description('Who'),
    operation: id().example('revokeKey'),
    subject: nullableText.description('What it was done to: an id, or the name of a workspace'),
    outcome: nullableText.description(
        '`done`, else the code of the error; null while it is under way, and where that could not be written',
    ),
}).label('AuditEntry');
