import Joi from 'joi';
import { auditQuerySchema } from '../../lib/audit/audit-trail.ts';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { FINDING_PARTS, FINDING_STATES } from '../../lib/webhooks/observing/finding.ts';
import { deliverySchemas } from './delivery-schemas.ts';
import { exporterSchemas } from './exporter-schemas.ts';
import { byId, flag, id, nullableDate } from './field-schemas.ts';
import { inventorySchemas } from './inventory-schemas.ts';
import { keySchemas } from './key-schemas.ts';
import type { OperationName } from './operations.ts';

const { count, time: date, text, nullableText } = FIELD_SCHEMAS;

/** What an operation accepts and answers with over HTTP, as its route is checked and documented. */
export interface OperationSchemas {
    readonly description: string;
    readonly params?: Joi.ObjectSchema;
    readonly query?: Joi.ObjectSchema;
    readonly headers?: Joi.ObjectSchema;
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

const diagnosisSchema: Joi.ObjectSchema = Joi.object({
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

const licenseSchema: Joi.ObjectSchema = Joi.object({
    holder: nullableText.description('Null, like the times, unless the signature is right'),
    notBefore: nullableDate(),
    expires: nullableDate(),
    valid: flag(),
    reason: nullableText.description('Why it is not valid'),
}).label('License');

const auditEntrySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    at: date.description('When it began'),
    actor: text.description('Who'),
    operation: id().example('revokeKey'),
    subject: nullableText.description('What it was done to: an id, or the name of a workspace; both names of one that was renamed'),
    outcome: nullableText.description(
        '`done`, else the code of the error; null while it is under way, and where that could not be written',
    ),
}).label('AuditEntry');

/** The schemas of every operation. */
export const schemas: Readonly<Record<OperationName, OperationSchemas>> = {
    ...keySchemas,
    ...exporterSchemas,
    ...deliverySchemas,
    ...inventorySchemas,
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
