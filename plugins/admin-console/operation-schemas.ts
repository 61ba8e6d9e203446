import Joi from 'joi';
import { auditQuerySchema } from '../../lib/audit/audit-trail.ts';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { newKeySchema, scopesSchema } from '../../lib/keys/limits.ts';
import { DEFAULT_SCOPES } from '../../lib/keys/scopes.ts';
import { nameSchema } from '../../lib/schema-validation.ts';
import { activityQuerySchema } from '../../lib/webhooks/deliveries/activity.ts';
import { deliveryFilterSchema, deliveryQuerySchema } from '../../lib/webhooks/deliveries/deliveries.ts';
import { replaySchema } from '../../lib/webhooks/deliveries/replays.ts';
import { exporterChangesSchema, newExporterSchema } from '../../lib/webhooks/exporters/exporter.ts';
import { MAX_COUNTED } from '../../lib/webhooks/exporters/exporter-health.ts';
import { exporterPageSchema } from '../../lib/webhooks/exporters/exporter-lists.ts';
import { DRAFTED } from '../../lib/webhooks/exporters/exporter-preview.ts';
import { inventorySchemas } from './inventory-schemas.ts';
import type { OperationName } from './operations.ts';
import {
    activitySchema,
    auditEntrySchema,
    byId,
    deliverySchema,
    deliveryViewSchema,
    diagnosisSchema,
    eventSchema,
    exporterSchema,
    exporterSummarySchema,
    flag,
    id,
    keySummarySchema,
    licenseSchema,
    maskedHeadersSchema,
    messageSchema,
    newEventSchema,
    pagedExporterSchema,
    replayViewSchema,
    revealedKeySchema,
    shownExporterSchema,
    testedExporterSchema,
    testOptionsSchema,
    testSchema,
    UNPLANNED,
    warningsSchema,
    withStart,
    withWait,
    yes,
} from './view-schemas.ts';

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
        problems: Joi.array()
            .items(Joi.object({ line: FIELD_SCHEMAS.count, field: Joi.string(), message: Joi.string().required() }))
            .description('Of a file with bad lines the first 100 of them'),
    }).required(),
}).label('Error');

const { count, text } = FIELD_SCHEMAS;

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
    summarizeExporters: {
        description: 'Names and states of all exporters, oldest first',
        query: Joi.object({ owner: Joi.string().description('Those of this owner only') }),
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
        response: testedExporterSchema,
    },
    startExporter: {
        description: 'Starts an exporter and sends a test event',
        params: byId,
        payload: testOptionsSchema,
        response: testedExporterSchema,
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
        description: 'Removes an exporter with its secrets; its unfinished deliveries are cancelled',
        params: byId,
        response: Joi.object({ id: id(), removed: yes() }),
    },

    publishEvent: {
        description: 'Accepts an event for all running exporters that want it',
        params: Joi.object({ kind: id().description('Event kind').example('idr_investigation_created') }),
        payload: newEventSchema.keys({
            idempotencyKey: Joi.string().max(200).description('Of the caller: repeated with it, an event is accepted once'),
            orderKey: Joi.string().max(200).description('Of the caller: ordered exporters get the events of a key one after another'),
        }),
        response: Joi.object({ eventId: id(), deliveries: Joi.array().items(Joi.string()).required() }).label('Accepted'),
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
        payload: Joi.object({ kind: id(), body: newEventSchema.extract('body') }).required(),
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

    showEvent: { description: 'An event without its body', params: byId, response: eventSchema },
    eraseEvent: {
        description: 'Erases the body of an event for good; its unfinished deliveries end as `erased`',
        params: byId,
        response: eventSchema.keys({ ended: count.description('Deliveries that have ended by this') }).label('ErasedEvent'),
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
            count: count.max(MAX_COUNTED),
            more: flag().description('Whether there are more than were counted'),
        }).label('DeliveryCount'),
    },
    showActivity: {
        description: 'What became of the deliveries of the last hour, in slices of five minutes, or of the last day, in hours',
        query: activityQuerySchema,
        response: activitySchema,
    },
    showDelivery: { description: 'A delivery with its attempts', params: byId, response: deliveryViewSchema },
    showMessage: { description: 'What a delivery sends, with what is secret masked', params: byId, response: messageSchema },
    replayDelivery: {
        description: 'Sends a delivery once more that has ended, is held or was tried in vain',
        params: byId,
        response: deliverySchema,
    },
    discardDelivery: {
        description: 'Ends a delivery for good that waits, is held or has failed: others of its order key go on',
        params: byId,
        response: deliverySchema,
    },

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

    ...inventorySchemas,
    rotateKeyRing: {
        description: 'Seals a batch of what is sealed at rest with the current key of the ring',
        payload: Joi.object({
            after: Joi.string().description('`next` of the batch before; from the beginning when absent'),
        }),
        response: Joi.object({
            sealed: count.description('Keys or exporters that were sealed again'),
            unopened: Joi.array().items(Joi.string()).required().description('What cannot be opened, by what it is sealed for'),
            next: text.allow(null).description('Where the next batch goes on; null when this was the last'),
        }).label('SealedAnew'),
    },
    migrate: {
        description: 'Brings the database up to this version',
        response: Joi.object({ applied: Joi.array().items(Joi.string()).required().description('Migrations that ran now') }),
    },
    listAudit: {
        description: 'What people have done, newest first',
        query: auditQuerySchema,
        response: Joi.array().items(auditEntrySchema),
    },
};
