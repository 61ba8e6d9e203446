import Joi from 'joi';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { activityQuerySchema, MAX_OF_SLICE } from '../../lib/webhooks/deliveries/activity.ts';
import {
    attemptFilterSchema,
    attemptQuerySchema,
    deliveryFilterSchema,
    deliveryQuerySchema,
} from '../../lib/webhooks/deliveries/delivery-filter.ts';
import { replaySchema } from '../../lib/webhooks/deliveries/replays.ts';
import { ownerSchema } from '../../lib/webhooks/exporters/exporter.ts';
import { ATTEMPT_PHASES, OUTCOME_CODES } from '../../lib/webhooks/outcomes/outcome.ts';
import { RULE_SETS } from '../../lib/webhooks/setting-values.ts';
import { byId, flag, id, nullableCount, nullableDate } from './field-schemas.ts';
import type { OperationSchemas } from './operation-schemas.ts';
import type { OperationName } from './operations.ts';

const { count, time: date, text, nullableText } = FIELD_SCHEMAS;

const timingsSchema = Joi.object({
    ...Object.fromEntries(ATTEMPT_PHASES.map((phase) => [phase, nullableCount()])),
    total: count,
}).description('Milliseconds; null for a phase that was not reached or not needed');

const responseBodySchema = Joi.object({
    text: nullableText.description(
        'At most 1,024 bytes, what was secret in the message masked; null for what is no text, or is compressed',
    ),
    bytes: count.description('How many were read of it'),
    truncated: flag().description('Whether it goes on'),
}).description('What the receiver answered, where that was no 2xx and is kept: text from outside');

const attemptFields: Joi.SchemaMap = {
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
    certificate: Joi.object({ issuer: text, expiresAt: date }).allow(null).required().description('Of the certificate that was presented'),
    late: flag().description('Its claim had run out by then: another attempt may have sent the same message'),
};

/** An attempt, as operations tell of it. */
export const attemptSchema: Joi.ObjectSchema = Joi.object({
    ...attemptFields,
    responseBody: responseBodySchema.allow(null).required(),
}).label('Attempt');

/** The outcome of a test, as operations tell of it. */
export const testSchema: Joi.ObjectSchema = Joi.object({
    deliveryId: id(),
    attempt: attemptSchema.allow(null).required().description('Null when it had no outcome in the time that it was waited for'),
}).label('Test');

const deliverySchema: Joi.ObjectSchema = Joi.object({
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

/** A number of deliveries, or of attempts. */
export const countSchema: Joi.ObjectSchema = Joi.object({
    count,
    more: flag().description('Whether there are more than were counted'),
}).label('DeliveryCount');

/** Fields of what becomes of deliveries from one time to another. @param max The most deliveries that are looked at. */
export const sliceFields = (max: number): Joi.SchemaMap => ({
    since: date,
    until: date,
    deliveries: count.max(max).description('Those that were accepted in it, the newest where there are more'),
    more: flag().description('Whether there may be more than were looked at'),
    delivered: count.description('Of these'),
    failed: count.description('Of these, those whose last attempt came to anything but `delivered`'),
});

const listedAttemptSchema: Joi.ObjectSchema = Joi.object({
    id: id().description('That of its delivery, a colon and its number'),
    deliveryId: id(),
    eventId: id(),
    kind: id(),
    exporterId: id(),
    ...attemptFields,
}).label('ListedAttempt');

const activitySchema: Joi.ObjectSchema = Joi.object({
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

const replayViewSchema: Joi.ObjectSchema = Joi.object({
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
const UNPLANNED: string[] = ['id', 'exporterId', 'failedSince', 'rate', 'done', 'state', 'createdAt', 'finishedAt'];

const eventSchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    kind: id(),
    createdAt: date,
    erasedAt: nullableDate().description('When its body was erased; null while it is there'),
}).label('Event');

const deliveryViewSchema: Joi.ObjectSchema = deliverySchema
    .keys({
        history: Joi.array().items(attemptSchema).required(),
        progress: timingsSchema.allow(null).required().description('Of a test that the answering process is sending, so far; else null'),
    })
    .label('DeliveryWithAttempts');

/** Additional headers, as they may be shown. */
export const maskedHeadersSchema: Joi.ArraySchema = Joi.array()
    .items(Joi.array().items(Joi.string().allow('')))
    .description('Pairs of name and value; what is secret in them is masked');

const messageSchema: Joi.ObjectSchema = Joi.object({
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

/** What an event is published by. */
export const newEventSchema: Joi.ObjectSchema = Joi.object({
    body: Joi.object().unknown().required().description('Body of the event, as its kind wants it'),
    rules: Joi.string()
        .valid(...RULE_SETS)
        .description('Rule set that raised an investigation'),
    owner: ownerSchema.description("Whose event it is; the deployment's own when absent"),
}).required();

type DeliveryOperation = Extract<
    OperationName,
    `${string}Event` | `${string}Attempts` | `${string}Deliver${string}` | `${string}Replay${string}` | 'showActivity' | 'showMessage'
>;

/** The schemas of the operations on events, deliveries and replays. What a body may be is the rule of the library, which checks it again. */
export const deliverySchemas: Readonly<Record<DeliveryOperation, OperationSchemas>> = {
    publishEvent: {
        description: 'Accepts an event for all running exporters that want it',
        params: Joi.object({ kind: id().description('Event kind').example('idr_investigation_created') }),
        payload: newEventSchema.keys({
            idempotencyKey: Joi.string().max(200).description('Of the caller: repeated with it, an event is accepted once'),
            orderKey: Joi.string().max(200).description('Of the caller: ordered exporters get the events of a key one after another'),
        }),
        response: Joi.object({ eventId: id(), deliveries: Joi.array().items(Joi.string()).required() }).label('Accepted'),
    },
    showEvent: { description: 'An event without its body', params: byId, response: eventSchema },
    eraseEvent: {
        description: 'Erases the body of an event for good; its deliveries that have not ended, `held` ones too, end as `erased`',
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
        response: countSchema,
    },
    listAttempts: {
        description: 'Attempts that have ended: those of the newest deliveries first, and of each the last ones',
        query: attemptQuerySchema,
        response: Joi.array().items(listedAttemptSchema),
    },
    countAttempts: {
        description: 'How many attempts there are of those that a list would have',
        query: attemptFilterSchema,
        response: countSchema,
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
    listReplays: {
        description: 'The newest 100 replays, and of the older ones those that run; newest first',
        response: Joi.array().items(replayViewSchema),
    },
    showReplay: { description: 'A replay and how far it is, however many have begun since', params: byId, response: replayViewSchema },
    cancelReplay: { description: 'Ends a replay; what has been replayed by then goes on', params: byId, response: replayViewSchema },
};
