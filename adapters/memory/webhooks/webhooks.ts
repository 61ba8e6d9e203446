import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import Joi from 'joi';
import type { Clock } from '../../../lib/clock.ts';
import { checked, clockSchema } from '../../../lib/schema-validation.ts';
import type { SettingsStore } from '../../../lib/webhooks/deployment-settings.ts';
import type { WebhookStores } from '../../../lib/webhooks/options.ts';
import { ofSending } from '../../../lib/webhooks/setting-values.ts';
import { deliveryStore } from './deliveries.ts';
import { exporterStore } from './exporters.ts';
import type { WebhookState } from './webhook-state.ts';

/** How the stores of the webhook exporter in memory are made. */
export interface MemoryWebhooksOptions {
    /** The stores' time; that of the process by default. */
    readonly clock?: Clock;
    /** Makes the ids of deliveries; random ones by default. */
    readonly newId?: () => string;
}

const optionsSchema: Joi.ObjectSchema<Required<MemoryWebhooksOptions>> = Joi.object({
    clock: clockSchema,
    newId: Joi.function().default(() => randomUUID),
});

/** Exporters, deliveries and the deployment's settings in the memory of this process, gone with it: for tests and for trying things out. */
export function memoryWebhooks(options: MemoryWebhooksOptions = {}): WebhookStores {
    const { clock, newId } = checked(optionsSchema, options, { subject: 'memoryWebhooks options', code: 'MISCONFIGURED' });
    const state: WebhookState = {
        exporters: new Map(),
        events: new Map(),
        erased: new Map(),
        deliveries: new Map(),
        replays: new Map(),
        numbered: 0,
        keys: new Map(),
        notices: [],
        noticed: 0,
        traces: new Map(),
        inOrder: new Set(),
        active: new Set(),
        sessions: new Map(),
        ratePaidUntil: null,
        turnsTaken: 0,
        deployment: { id: randomUUID(), generation: 0, settings: null },
        revision: 0,
        clock,
        newId,
    };
    const database = {};
    return {
        exporters: Object.assign(exporterStore(state), { database }),
        deliveries: Object.assign(deliveryStore(state), { database }),
        settings: Object.assign(settingsStore(state), { database }),
    };
}

function settingsStore(state: WebhookState): SettingsStore {
    return {
        read: async () => structuredClone(state.deployment),

        async declare(declared) {
            const { id, generation, settings } = state.deployment;
            const isSame = settings !== null && isDeepStrictEqual(ofSending(settings), ofSending(declared));
            state.deployment = { id, generation: isSame ? generation : generation + 1, settings: structuredClone(declared) };
            return structuredClone(state.deployment);
        },
    };
}
