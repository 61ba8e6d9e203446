/** Routes for programs that have a key: what they may publish, and how deliveries fare. Nothing here shows a body, a secret or a receiver's URL. */
import Boom from '@hapi/boom';
import type { Lifecycle, Request, RouteOptions, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { quickly } from '../../lib/compiled-schema.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import { checked } from '../../lib/schema-validation.ts';
import type { DeliveryHistory } from '../../lib/webhooks/deliveries/deliveries.ts';
import { deliveryQuerySchema } from '../../lib/webhooks/deliveries/delivery-filter.ts';
import type { Delivery } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { AcceptedEvent } from '../../lib/webhooks/events/new-event.ts';
import type { EventToPublish } from '../../lib/webhooks/events/publisher.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { within } from '../../lib/within.ts';
import { type StoreFailure, toBoom } from '../errors.ts';
import { inTime, noteArrival } from '../in-time.ts';
import { logFailure } from '../log-and-events.ts';
import { licensed, needsAllWorkspaces, needsScope } from '../route-authorization.ts';
import { isPacked, messagesFirst, READABLE_COOKIES, UNPACKED_ONLY, unsniffed } from '../route-parts.ts';
import type { CheckedRoutes } from './options.ts';

/** What hapi is told when the strategy is missing. */
export const UNKNOWN_STRATEGY =
    'webhook-exporter options: routes.auth must name a strategy of the server: register token-auth before, or a strategy of your own';

const UNREADABLE: StoreFailure = { plugin: 'webhook-exporter', message: 'The licence cannot be read now; try again later' };

/** @param maxBodyBytes The longest body of an event, as it is stored. */
export function exporterRoutes(
    { publish, deliveries }: Pick<Webhooks, 'publish' | 'deliveries'>,
    { prefix, ...access }: CheckedRoutes,
    maxBodyBytes: number,
): ServerRoute[] {
    const reading = optionsOf('deliveries:read', access, [{ method: noteArrival }]);
    return [
        {
            method: 'POST',
            path: `${prefix}/events`,
            options: {
                ...optionsOf('events:publish', access),
                description: 'Accepts an event for all running exporters that want it',
                // As it is sent a body may be longer than as it is stored: a character of two bytes has six in an escape.
                payload: { allow: 'application/json', maxBytes: 3 * maxBodyBytes + 65_536, protoAction: 'error' },
            },
            handler: (request, h) => answered(request, async () => h.response(await published(publish, request)).code(202), repeating),
        },
        {
            method: 'GET',
            path: `${prefix}/deliveries`,
            options: { ...reading, description: 'Deliveries, newest first' },
            handler: (request) => answered(request, async () => await inTime(request, () => page(deliveries, request))),
        },
        {
            method: 'GET',
            path: `${prefix}/deliveries/{id}`,
            options: { ...reading, description: 'A delivery with its attempts' },
            handler: (request) =>
                answered(request, async () => shown(await inTime(request, () => deliveries.show(String(request.params.id))))),
        },
    ];
}

/** A key is asked for its scope; deliveries belong to no workspace, so one that is limited to some has no business here. */
function optionsOf(
    scope: ApiKeyScope,
    { auth, license }: Omit<CheckedRoutes, 'prefix'>,
    arriving: readonly { readonly method: Lifecycle.Method }[] = [],
): RouteOptions {
    return {
        auth: { strategies: [auth], mode: 'required' },
        cache: { otherwise: 'no-store' },
        state: READABLE_COOKIES,
        ext: {
            onPreAuth: [...arriving, { method: asItIs }],
            onCredentials: [{ method: needsScope(scope, `The API key needs the scope ${scope}`) }, { method: needsAllWorkspaces }],
            ...(license && { onPostAuth: { method: licensed(license, UNREADABLE) } }),
            onPreResponse: unsniffed,
        },
    };
}

const asItIs: Lifecycle.Method = (request, h) => {
    if (isPacked(request)) {
        throw Boom.unsupportedMediaType(UNPACKED_ONLY);
    }

    return h.continue;
};

/**
 * Errors come to what `docs/errors.md` says; the log has why something cannot be done now.
 *
 * @param later What a client reads then; without it, to try again later.
 */
async function answered<T>(request: Request, act: () => Promise<T>, later?: (request: Request) => string): Promise<T> {
    try {
        return await act();
    } catch (error) {
        const boom = toBoom(error);
        if (error instanceof ScanwireError && error.code === 'UNAVAILABLE') {
            logFailure(request, 'webhook-exporter', error);
            if (later !== undefined) {
                boom.output.payload.message = later(request);
            }
        }
        throw boom;
    }
}

/** Whoever got no answer does not know whether the event was accepted. */
function repeating(request: Request): string {
    return keyOf(request) === undefined
        ? 'This cannot be done now. The event had no idempotency key: it may have been accepted, and would be another one if it came again'
        : 'This cannot be done now; try again later, with the same idempotency key: the event is accepted once';
}

/** The idempotency key of an event that was sent. */
function keyOf({ payload, headers }: Request): string | undefined {
    return (payload as Partial<EventToPublish> | null)?.idempotencyKey ?? (headers['idempotency-key'] as string | undefined);
}

/** What is sent. What its fields may be is the rule of `publish`. */
export const eventSchema: Joi.ObjectSchema<EventToPublish> = quickly(
    Joi.object({
        kind: Joi.string().required(),
        body: Joi.object().unknown().required(),
        rules: Joi.any(),
        owner: Joi.any(),
        idempotencyKey: Joi.string(),
        orderKey: Joi.any(),
    }).required(),
    [],
);

async function published(publish: Webhooks['publish'], request: Request): Promise<AcceptedEvent> {
    const { kind, body, ...options } = checked(eventSchema, request.payload ?? undefined, { subject: 'Event' });
    const inHeader = request.headers['idempotency-key'];
    const idempotencyKey = keyOf(request);
    if (inHeader !== undefined && inHeader !== idempotencyKey) {
        const message = 'Event: idempotencyKey must be the same as in the header Idempotency-Key';
        throw new ScanwireError('INVALID_INPUT', message, { field: 'idempotencyKey' });
    }

    const accepted = publish(kind, body, { ...options, ...(idempotencyKey !== undefined && { idempotencyKey }) });
    const { eventId, deliveries } = await within(accepted, { timeout: PATIENCE, late: unanswered });
    await messagesFirst();
    return { eventId, deliveries };
}

/** How long a client waits for a store that says nothing, in milliseconds. What is accepted later all the same, it repeats under its idempotency key. */
const PATIENCE = 9_500;

function unanswered(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The store has not accepted an event within ${PATIENCE} ms`);
}

interface DeliveryPage {
    readonly deliveries: readonly Delivery[];
    /** Path of the page behind this one, null where this one is not full. */
    readonly next: string | null;
}

async function page({ list }: Webhooks['deliveries'], { query, path }: Request): Promise<DeliveryPage> {
    const asked = checked(deliveryQuerySchema, query);
    const deliveries = await list(asked);
    const last = deliveries.length < asked.limit ? undefined : deliveries.at(-1);
    const parameters = new URLSearchParams({ ...(query as Record<string, string>), after: last?.id ?? '' });
    return { deliveries, next: last === undefined ? null : `${path}?${parameters}` };
}

/** Without the address that was called, the certificate that it had, and the sentence that may name both: those are for who administers receivers. */
function shown({ history, progress: _, ...delivery }: DeliveryHistory): object {
    return {
        ...delivery,
        history: history.map(({ number, startedAt, finishedAt, outcome, late }) => {
            const { code = null, status = null, timings = null } = outcome ?? {};
            return { number, startedAt, finishedAt, code, status, timings, late };
        }),
    };
}
