import t from 'tap';
import { responseLaws, retainedResponseLaws } from '../../../../adapters/contract/webhooks/response-laws.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { AttemptResponse, ResponseBody, ResponseStore } from '../../../../lib/webhooks/outcomes/response-bodies.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Stores whose responses are wrong in some way. */
function responding(change: (honest: ResponseStore, deliveries: DeliveryStore) => Partial<ResponseStore>): Mutant {
    return (_, deliveries) => {
        const honest = deliveries.responses as ResponseStore;
        return { deliveries: { responses: { ...honest, ...change(honest, deliveries) } } };
    };
}

/** Goes on showing what it was given, whatever became of it, as long as this holds of the delivery. */
function remembering(holds: (deliveryId: string, deliveries: DeliveryStore) => Promise<boolean>): Mutant {
    return responding((honest, deliveries) => {
        const given = new Map<string, ResponseBody>();
        return {
            async keep(responses) {
                for (const { deliveryId, body } of responses) {
                    given.set(deliveryId, body);
                }
                await honest.keep(responses);
            },
            async of(deliveryId) {
                const body = given.get(deliveryId);
                return body !== undefined && (await holds(deliveryId, deliveries)) ? new Map([[1, body]]) : await honest.of(deliveryId);
            },
        };
    });
}

async function isErased(deliveryId: string, deliveries: DeliveryStore): Promise<boolean> {
    const delivery = await deliveries.get(deliveryId);
    return delivery !== null && (await deliveries.event(delivery.eventId))?.erasedAt !== null;
}

/** Keeps the last response of each attempt. */
function overwriting(honest: ResponseStore): Partial<ResponseStore> {
    const last = new Map<string, AttemptResponse>();
    return {
        async keep(responses) {
            for (const response of responses) {
                last.set(response.deliveryId, response);
            }
            await honest.keep(responses);
        },
        async of(deliveryId) {
            const bodies = await honest.of(deliveryId);
            return new Map([...bodies].map(([number, body]) => [number, last.get(deliveryId)?.body ?? body]));
        },
    };
}

const MUTANTS: Mutants = {
    'keeps what receivers answered, by the numbers of attempts': responding((honest) => ({
        of: async (id) => new Map([...(await honest.of(id))].map(([number, body]) => [number, { ...body, text: body.text ?? '' }])),
    })),
    'has no response of an attempt that got none': responding((honest) => ({
        of: async (id) => new Map([[1, { text: null, bytes: 0, truncated: false }], ...(await honest.of(id))]),
    })),
    'keeps the first response of an attempt': responding(overwriting),
    'keeps the response of an attempt whose claim was lost': responding((honest, deliveries) => ({
        of: async (id) => ((await deliveries.attempts(id)).some(({ late }) => late) ? new Map() : await honest.of(id)),
    })),
    'keeps no response of a delivery that does not exist': remembering(async (id, deliveries) => (await deliveries.get(id)) === null),
    'erases the responses to an event with its body, and no others': remembering(isErased),
    'keeps no response to an event whose body was erased': remembering(isErased),
    'leaves no response behind when an event is erased while they are kept': remembering(isErased),
};

const RETAINED_MUTANTS: Mutants = {
    'removes responses with their deliveries': remembering(async (id, deliveries) => (await deliveries.get(id)) === null),
};

proveWebhookLaws(t, responseLaws, MUTANTS);
proveWebhookLaws(t, retainedResponseLaws, RETAINED_MUTANTS);
