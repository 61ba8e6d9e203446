import { randomUUID } from 'node:crypto';
import t from 'tap';
import { settingsLaws } from '../../../../adapters/contract/webhooks/settings-laws.ts';
import { type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'begins one deployment without settings, whoever asks first': (_, __, ___, settings) => ({
        settings: { read: async () => ({ ...(await settings.read()), id: randomUUID() }) },
    }),
    'keeps settings as they were declared': (_, __, ___, settings) => ({
        settings: {
            declare: ({ egress: _, ...declared }) => settings.declare(declared),
        },
    }),
    'begins the deployment when settings are declared first': (_, __, ___, settings) => ({
        settings: { declare: async (declared) => ({ ...(await settings.declare(declared)), id: randomUUID() }) },
    }),
    'raises the generation when settings differ, and only then': (_, __, ___, settings) => {
        let generation = 0;
        return {
            settings: {
                async declare(declared) {
                    generation += 1;
                    return { ...(await settings.declare(declared)), generation };
                },
            },
        };
    },
    'keeps what owners may have, of which no process that sends has to hear': (_, __, ___, settings) => ({
        settings: {
            declare: ({ owners: _, ...declared }) => settings.declare(declared),
        },
    }),
    'loses no change when several declare at once': (_, __, ___, settings) => ({
        settings: {
            async declare(declared) {
                const { generation } = await settings.read();
                return { ...(await settings.declare(declared)), generation: generation + 1 };
            },
        },
    }),
    'names one database in all of its stores, or in none': () => ({ settings: { database: {} } }),
    'claims nothing for a session of other settings': (_, deliveries) => ({
        deliveries: { keepAlive: ({ generation: _, ...session }, duration) => deliveries.keepAlive(session, duration) },
    }),
    'claims nothing for a session that is not known any more': (_, deliveries) => ({
        deliveries: {
            async claim(requests, session, maxBytes) {
                const known = await deliveries.sessions();
                return await deliveries.claim(requests, known.some(({ id }) => id === session) ? session : null, maxBytes);
            },
        },
    }),
    'says under which settings it hands out': (_, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const { handedOut, ...left } = await deliveries.dispatch(options);
                return {
                    handedOut: handedOut.map((one) => ({ ...one, reservation: one.reservation && { ...one.reservation, settings: 1 } })),
                    ...left,
                };
            },
        },
    }),
    'claims for sessions that say no generation': (_, deliveries) => ({
        deliveries: { keepAlive: (session, duration) => deliveries.keepAlive({ generation: 0, ...session }, duration) },
    }),
};

proveWebhookLaws(t, settingsLaws, MUTANTS);
