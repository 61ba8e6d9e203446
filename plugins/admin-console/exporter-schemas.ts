import Joi from 'joi';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { AUTHENTICATION_PARTS } from '../../lib/webhooks/exporters/authentication.ts';
import { newExporterSchema, scheduleSchema, settingSchemas } from '../../lib/webhooks/exporters/exporter.ts';
import { BACKLOG_AGES, BREAKERS } from '../../lib/webhooks/exporters/exporter-health.ts';
import { exporterPageSchema, MAX_OF_EACH } from '../../lib/webhooks/exporters/exporter-lists.ts';
import { exporterChangesSchema } from '../../lib/webhooks/exporters/exporter-patch.ts';
import { DRAFTED } from '../../lib/webhooks/exporters/exporter-preview.ts';
import { EXPORT_TYPES } from '../../lib/webhooks/setting-values.ts';
import { attemptSchema, countSchema, maskedHeadersSchema, newEventSchema, sliceFields, testSchema } from './delivery-schemas.ts';
import { byId, flag, id, nullableDate, yes } from './field-schemas.ts';
import type { OperationSchemas } from './operation-schemas.ts';
import type { OperationName } from './operations.ts';

const { count, time: date, text, nullableText } = FIELD_SCHEMAS;

/** Settings of an exporter, and whether it is started. */
const withStart = (settings: Joi.ObjectSchema): Joi.ObjectSchema =>
    settings.keys({ start: Joi.boolean().description('Starts it too, which sends a test event') });

const waitSchema = Joi.boolean().description('Whether the outcome of the test is waited for; true when nothing is said');

/** Of what sends a test and has nothing else to say. */
const testOptionsSchema: Joi.ObjectSchema = Joi.object({ wait: waitSchema }).allow(null);

/** What changes settings, and sends a test. */
const withWait = (settings: Joi.ObjectSchema): Joi.ObjectSchema => settings.keys({ wait: waitSchema });

const { schedule: _, ...alwaysShown } = settingSchemas;

const exporterSchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    ...Object.fromEntries(Object.entries(alwaysShown).map(([name, rule]) => [name, rule.required()])),
    url: id().description('Scheme, host and port of the receiver, then `/…` for what may hold a token').example('https://example.com/…'),
    schedule: scheduleSchema.description('Retry delays of its own in milliseconds; absent where it has the default ones'),
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

const exporterSummarySchema: Joi.ObjectSchema = Joi.object(
    Object.fromEntries(SUMMARIZED.map((field) => [field, exporterSchema.extract(field)])),
).label('ExporterSummary');

const backlogSchema = Joi.object({
    waiting: count,
    more: flag().description('Whether more wait than were counted'),
    oldest: nullableDate().description('Since when the oldest of those counted waits'),
    ages: Joi.object(Object.fromEntries(BACKLOG_AGES.map(([age]) => [age, count])))
        .required()
        .description('How many of those counted are of each age'),
}).description('Deliveries that wait for their time, for room or for another of their order key');

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

const shownExporterSchema: Joi.ObjectSchema = exporterSchema.keys({ health: healthSchema }).label('ShownExporter');

const warningsSchema: Joi.ArraySchema = Joi.array()
    .items(Joi.object({ code: Joi.string().required().example('plain_http'), message: text }).label('ReceiverWarning'))
    .required()
    .description('What is doubtful about its receiver');

const testedExporterSchema: Joi.ObjectSchema = exporterSchema
    .keys({ test: testSchema.required(), warnings: warningsSchema })
    .label('TestedExporter');

const heldSchema: Joi.ObjectSchema = countSchema.description(
    'Of a start: what was held while an outcome had stopped it, which is sent only once it is replayed',
);

const pagedExporterSchema: Joi.ObjectSchema = shownExporterSchema
    .keys({
        day: Joi.array()
            .items(Joi.object(sliceFields(MAX_OF_EACH)).label('DaySlice'))
            .allow(null)
            .required()
            .description('What became of its deliveries within a day, in slices of three hours; null where the store does not tell'),
    })
    .label('PagedExporter');

/** Of lists that are not in pages. */
const ofOwner: Joi.ObjectSchema = Joi.object({ owner: Joi.string().description('Those of this owner only') });

type ExporterOperation = Extract<Exclude<OperationName, 'diagnoseExporter'>, `${string}Exporter${string}` | 'previewDraft'>;

/** The schemas of the operations on exporters. What a setting may be is the rule of the library, which checks it again. */
export const exporterSchemas: Readonly<Record<ExporterOperation, OperationSchemas>> = {
    createExporter: {
        description: 'Configures a receiver; answers with the signing secret as well',
        payload: withStart(newExporterSchema),
        response: exporterSchema
            .keys({ secret: id().description('Signing secret'), test: testSchema, warnings: warningsSchema, held: heldSchema })
            .label('CreatedExporter'),
    },
    listExporters: { description: 'All exporters, oldest first', query: ofOwner, response: Joi.array().items(exporterSchema) },
    summarizeExporters: {
        description: 'Names and states of all exporters, oldest first',
        query: ofOwner,
        response: Joi.array().items(exporterSummarySchema),
    },
    pageExporters: {
        description: 'Some of the exporters, how each fares, and what became of its deliveries within a day',
        query: exporterPageSchema,
        response: Joi.array().items(pagedExporterSchema),
    },
    showExporter: {
        description: 'One exporter and how it fares',
        params: byId,
        query: Joi.object({ showUrl: Joi.boolean().description('With the whole URL of its receiver, which may hold a token') }),
        response: shownExporterSchema,
    },
    updateExporter: {
        description: 'Changes settings of an exporter and sends a test event',
        params: byId,
        payload: withWait(withStart(exporterChangesSchema)),
        response: testedExporterSchema.keys({ held: heldSchema }).label('UpdatedExporter'),
    },
    startExporter: {
        description: 'Starts an exporter and sends a test event',
        params: byId,
        payload: testOptionsSchema,
        response: testedExporterSchema.keys({ held: heldSchema.required() }).label('StartedExporter'),
    },
    stopExporter: { description: 'Stops an exporter; what was accepted waits', params: byId, response: testedExporterSchema },
    pauseExporter: { description: 'Pauses an exporter; what is accepted for it waits', params: byId, response: exporterSchema },
    resumeExporter: { description: 'Resumes an exporter; what waits is sent', params: byId, response: exporterSchema },
    testExporter: {
        description: 'Sends a test event and waits for its outcome',
        params: byId,
        payload: testOptionsSchema,
        response: testSchema,
    },
    removeExporter: {
        description: 'Removes an exporter with its secrets; its deliveries that have not ended, `held` ones too, are cancelled',
        params: byId,
        response: Joi.object({ id: id(), removed: yes() }),
    },
    explainExporter: {
        description: 'Whether an exporter gets an event, and if not, why not',
        params: byId,
        payload: newEventSchema.keys({ kind: id() }),
        response: Joi.object({ wanted: flag(), reason: text.optional() }).label('Choice'),
    },
    previewExporter: {
        description: 'What would be sent of an event to an exporter',
        params: byId,
        payload: Joi.object({
            kind: id(),
            body: newEventSchema.extract('body').optional().description('Body of the event, as its kind wants it; a `test` needs none'),
        }).required(),
        response: Joi.object({ headers: maskedHeadersSchema.required(), body: text }).label('Preview'),
    },
    previewDraft: {
        description: 'What would become of an event with settings that are not saved',
        payload: Joi.object({
            draft: Joi.object({
                id: Joi.string().description('The exporter that they would change; a new one when absent'),
                ...Object.fromEntries([...DRAFTED, 'type'].map((name) => [name, exporterChangesSchema.extract(name)])),
                ...Object.fromEntries(['owner', 'legacy'].map((name) => [name, newExporterSchema.extract(name).optional()])),
            }).required(),
            kind: id(),
            body: newEventSchema.extract('body'),
        }).required(),
        response: Joi.object({ wanted: flag(), reason: text.optional(), headers: maskedHeadersSchema.required(), body: text }).label(
            'DraftPreview',
        ),
    },
};
