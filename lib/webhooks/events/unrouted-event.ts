import { createHash } from 'node:crypto';
import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import { checked, storableText } from '../../schema-validation.ts';
import type { Executor } from '../../transaction.ts';
import type { DeliveryStore } from '../deliveries/delivery-store.ts';
import { ownerSchema } from '../exporters/exporter.ts';
import { RULE_SETS, type RuleSet } from '../setting-values.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { judged, type WrittenBody, writtenBody } from './event-body.ts';
import { type EventKind, type EventKinds, isNoticeKind } from './event-kinds.ts';
import type { UnroutedEvent } from './event-routing.ts';
import { isSubscribable, kindAmong } from './subscription.ts';

/** What may be said about an event besides its body. */
export interface PublishOptions {
    /**
     * Of an event about an investigation: the set of detection rules that raised it. Exporters of the type `investigation_legacy` do not get those
     * of `library`.
     */
    readonly rules?: RuleSet;
    /**
     * Whose event it is, in the application's words, at most 200 characters. Among exporters that have an owner, only those of this owner get it.
     * By default it is the deployment's own, which only exporters without an owner get.
     */
    readonly owner?: string;
    /**
     * A key of the caller's, at most 200 characters. A caller that repeats a publish which may have succeeded gives the same key, and gets the
     * first answer again, for as long as the event is kept. Another kind or body under the same key, of the same owner, is refused.
     */
    readonly idempotencyKey?: string;
    /**
     * A key of the caller's, at most 200 characters. Ordered exporters get events with the same key one after another, in the order in which they
     * were accepted. A publish with a key waits for open transactions in which an event with the same key was published.
     */
    readonly orderKey?: string;
    /**
     * An open transaction of the application: event and deliveries exist if and only if it commits. Needs a store that keeps them
     * in the same database (`transactions`). `docs/webhook-exporter.md` has the few lines that make one of a query builder's.
     */
    readonly tx?: Executor;
}

/** An event whose body is text. */
interface WrittenEvent {
    readonly kind: EventKind;
    readonly written: WrittenBody;
}

const ownerAndKeysSchema: Joi.ObjectSchema<{ owner?: string; idempotencyKey?: string; orderKey?: string }> = Joi.object({
    owner: ownerSchema,
    idempotencyKey: storableText().max(200),
    orderKey: storableText().max(200),
});

/** Makes events of what is published, in two steps, between which others can get through. */
export function unroutedEvents({ kinds, deliveries, maxBodyBytes, newId }: WebhooksContext) {
    return {
        written(kindName: string, body: unknown): WrittenEvent {
            const kind = publishableKind(kinds, kindName);
            return { kind, written: writtenBody(kind, body, maxBodyBytes) };
        },

        /** The event with its body checked and frozen as bytes. */
        unrouted({ kind, written }: WrittenEvent, { rules, ...ownerAndKeys }: Omit<PublishOptions, 'tx'>): UnroutedEvent {
            const text = judged(kind, written, maxBodyBytes);
            if (rules !== undefined && !RULE_SETS.includes(rules)) {
                throw new ScanwireError('INVALID_INPUT', `Rules must be ${RULE_SETS.join(' or ')}`, { field: 'rules' });
            }

            const event = { id: newId(), kind, body: text, rules: rules ?? null, owner: null };
            if (Object.values(ownerAndKeys).every((text) => text === undefined)) {
                return event;
            }

            const { owner = null, idempotencyKey: key, orderKey } = checked(ownerAndKeysSchema, ownerAndKeys, { subject: 'Event' });
            assertHeeded(deliveries, ownerAndKeys);
            const idempotency = key === undefined ? {} : { idempotency: { key, digest: digestOf(kind, text) } };
            return { ...event, owner, ...idempotency, ...(orderKey !== undefined && { orderKey }) };
        },
    };
}

/** @throws ScanwireError `MISCONFIGURED` for a key that the store would not heed. */
function assertHeeded({ idempotent, ordered }: DeliveryStore, { idempotencyKey, orderKey }: PublishOptions): void {
    if (idempotencyKey !== undefined && idempotent !== true) {
        throw new ScanwireError('MISCONFIGURED', 'The store keeps no idempotency keys', { field: 'idempotencyKey' });
    }
    if (orderKey !== undefined && ordered !== true) {
        throw new ScanwireError('MISCONFIGURED', 'The store keeps no order', { field: 'orderKey' });
    }
}

function digestOf({ name }: EventKind, body: string): string {
    return createHash('sha256').update(`${name}\n${body}`).digest('base64url');
}

/** @throws ScanwireError `INVALID_INPUT` for one that the application cannot publish: what scanwire itself sends, it may not. */
function publishableKind(kinds: EventKinds, name: string): EventKind {
    return kindAmong(kinds, name, (kind) => isSubscribable(kind) && !isNoticeKind(kind.name));
}
