import type { Claim, DeliveryStore, DispatchOptions, HandedOut, RecordedOutcome } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay, ReplayStore } from '../../lib/webhooks/deliveries/replays.ts';
import type { Deployment, SettingsStore } from '../../lib/webhooks/deployment-settings.ts';
import type { DeliveryJob, DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Reservation } from '../../lib/webhooks/dispatching/reservations.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import type { NewEvent } from '../../lib/webhooks/events/new-event.ts';
import type { ExporterStore } from '../../lib/webhooks/exporters/exporter-store.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { interrupted, type Outcome } from '../../lib/webhooks/outcomes/outcome.ts';
import type { Message } from '../../lib/webhooks/sending/http-sender.ts';
import type { Mutant } from './deployment.ts';
import type { Surroundings } from './simulated-process.ts';
import type { Timeline } from './timeline.ts';

/** Faults in the rows: what these methods do is what is true. */
function rows(fault: (store: DeliveryStore, timeline: Timeline) => Partial<DeliveryStore>): Mutant {
    return {
        below: (stores, timeline) => ({ ...stores, deliveries: { ...stores.deliveries, ...fault(stores.deliveries, timeline) } }),
    };
}

/** Faults of the engine, made of what it asks of honest stores. */
function asked(fault: (store: DeliveryStore, timeline: Timeline) => Partial<DeliveryStore>): Mutant {
    return {
        above: ({ stores, timeline }: Surroundings): { readonly stores: WebhookStores } => ({
            stores: { ...stores, deliveries: { ...stores.deliveries, ...fault(stores.deliveries, timeline) } },
        }),
    };
}

/** Faults in the rows of replays of many deliveries. */
function replaysAre(fault: (replays: ReplayStore, store: DeliveryStore) => Partial<ReplayStore>): Mutant {
    return rows((store) => {
        const replays = store.replays as ReplayStore;
        return { replays: { ...replays, ...fault(replays, store) } };
    });
}

/** Every process says something else of itself. */
function sessionsAre(change: (session: Session) => Session): Mutant {
    return asked((store) => ({ keepAlive: (session, duration) => store.keepAlive(change(session), duration) }));
}

/** Every process sends something else. */
function messagesAre(changing: () => (message: Message) => Message): Mutant {
    return {
        above: ({ senderFor }) => {
            const change = changing();
            return {
                senderFor: (process) => {
                    const sender = senderFor(process);
                    return { ...sender, send: (message) => sender.send(change(message)) };
                },
            };
        },
    };
}

function outcomesAre(change: (recorded: RecordedOutcome) => RecordedOutcome): Mutant {
    return asked((store) => ({ recordOutcomes: (outcomes, rules) => store.recordOutcomes(outcomes.map(change), rules) }));
}

function handedOutAsIf(changed: Partial<DispatchOptions>): Mutant {
    return asked((store) => ({ dispatch: (options) => store.dispatch({ ...options, ...changed }) }));
}

function queueIs(fault: (queue: DeliveryQueue) => Partial<DeliveryQueue>): Mutant {
    return {
        above: ({ queueFor }) => ({
            queueFor: (process) => {
                const queue = queueFor(process);
                return { ...queue, ...fault(queue) };
            },
        }),
    };
}

function withoutKey({ orderKey: _, ...newEvent }: NewEvent): NewEvent {
    return newEvent;
}

/** Those that were claimed, as long as their outcome is not known. */
function remembering(): {
    readonly claims: Map<string, Claim>;
    readonly noted: (claims: readonly (Claim | null)[]) => readonly (Claim | null)[];
} {
    const claims = new Map<string, Claim>();
    const noted = (granted: readonly (Claim | null)[]): readonly (Claim | null)[] => {
        for (const claim of granted) {
            if (claim !== null) {
                claims.set(claim.deliveryId, claim);
            }
        }
        return granted;
    };
    return { claims, noted };
}

/** Engines that are wrong in one thing each. */
export const mutants: Readonly<Record<string, () => Mutant>> = {
    'a clock that stands still while the machine is suspended': () => ({ above: () => ({ clockOf: ({ running }) => running }) }),

    'a format that is forgotten with a claim: the body of the event goes out in its place': () =>
        asked((store) => ({
            claim: async (requests, session, maxBytes) =>
                (await store.claim(requests, session, maxBytes)).map((claim) => claim && { ...claim, message: null }),
        })),

    'a batch that is promised as soon as its first event is stored': () =>
        asked((store) => ({
            accept: async (newEvents, options) => {
                const accepted = await store.accept(newEvents.slice(0, 1), options);
                return newEvents.map(({ event: { id } }, index) => accepted[index] ?? { eventId: id, deliveries: [], handedOut: [] });
            },
        })),

    'a claim that fences nobody off: who comes second gets it too': () =>
        asked((store) => {
            const { claims, noted } = remembering();
            return {
                claim: async (requests, session, maxBytes) => {
                    const granted = noted(await store.claim(requests, session, maxBytes));
                    return granted.map((claim, index) => claim ?? claims.get(requests[index]?.deliveryId ?? '') ?? null);
                },
            };
        }),

    'an order that nobody keeps': () =>
        rows((store) => ({ accept: (newEvents, options) => store.accept(newEvents.map(withoutKey), options) })),

    'a key that nothing that has failed holds': () => ({
        below: ({ exporters, ...stores }) => ({
            ...stores,
            exporters: {
                ...exporters,
                update: async (id, { afterExhausted = 'skip', ...patch }) => ({
                    ...(await exporters.update(id, { ...patch, afterExhausted: 'skip' })),
                    afterExhausted,
                }),
            },
        }),
    }),

    'a sweep that does not look at sessions': () =>
        asked((store) => ({ claim: (requests, _, maxBytes) => store.claim(requests, null, maxBytes) })),

    'a sweep that takes what its holder still has': () =>
        rows((store) => {
            const { claims, noted } = remembering();
            return {
                claim: async (requests, session, maxBytes) => noted(await store.claim(requests, session, maxBytes)),
                sweep: async (options) => {
                    await store.endSessions((await store.sessions()).slice(-1).map(({ id }) => id));
                    claims.clear();
                    return await store.sweep(options);
                },
            };
        }),

    'an outcome that is given up when the store is away': () => ({
        above: () => ({
            engineSees: (stores) => {
                const given = (outcomes: readonly unknown[]) => (): readonly boolean[] => outcomes.map(() => false);
                const recordOutcomes: DeliveryStore['recordOutcomes'] = (outcomes, rules) =>
                    stores.deliveries.recordOutcomes(outcomes, rules).catch(given(outcomes));
                return { ...stores, deliveries: { ...stores.deliveries, recordOutcomes } };
            },
        }),
    }),

    'a job that is added before its dispatch is committed': () =>
        asked((store, timeline) => {
            const committedAt = new Map<string, number>();
            return {
                dispatch: async (options) => {
                    const result = await store.dispatch(options);
                    for (const { deliveryId } of result.handedOut) {
                        committedAt.set(deliveryId, timeline.now + 50);
                    }
                    return { ...result, handedOut: result.handedOut.map((one) => ({ ...one, reservation: null })) };
                },
                claim: async (requests, session, maxBytes) => {
                    const visible = requests.filter(({ deliveryId }) => (committedAt.get(deliveryId) ?? 0) <= timeline.now);
                    const granted = visible.length === 0 ? [] : await store.claim(visible, session, maxBytes);
                    return requests.map((request) => granted[visible.indexOf(request)] ?? null);
                },
            };
        }),

    'a job that is added before its acceptance is committed': () =>
        rows((store, timeline) => {
            const committedAt = new Map<string, number>();
            const visible = ({ deliveryId }: { readonly deliveryId: string }): boolean =>
                (committedAt.get(deliveryId) ?? 0) <= timeline.now;
            return {
                accept: async (events, options) => {
                    const accepted = await store.accept(events, options);
                    for (const { deliveryId } of accepted.flatMap(({ handedOut }) => handedOut)) {
                        committedAt.set(deliveryId, timeline.now + 50);
                    }
                    return accepted;
                },
                claim: async (requests, session, maxBytes) => {
                    const seen = requests.filter(visible);
                    const granted = await store.claim(seen, session, maxBytes);
                    return requests.map((request) => granted[seen.indexOf(request)] ?? null);
                },
                recordOutcomes: async (outcomes, rules) => {
                    const seen = outcomes.filter(visible);
                    const held = await store.recordOutcomes(seen, rules);
                    return outcomes.map((outcome) => held[seen.indexOf(outcome)] ?? false);
                },
            };
        }),

    'a claim that was handed out and is honoured after its end': () =>
        asked((store) => {
            const prolonged = (handedOut: readonly HandedOut[]): readonly HandedOut[] =>
                handedOut.map((one) => ({
                    ...one,
                    reservation: one.reservation && { ...one.reservation, beginBy: one.reservation.beginBy + 900 },
                }));
            return {
                accept: async (events, options) => {
                    const accepted = await store.accept(events, options);
                    return accepted.map((one) => ({ ...one, handedOut: prolonged(one.handedOut) }));
                },
                dispatch: async (options) => {
                    const { handedOut, ...left } = await store.dispatch(options);
                    return { handedOut: prolonged(handedOut), ...left };
                },
            };
        }),

    'a claim that was handed out and is honoured each time its job comes': () => {
        const reservations = new Map<string, Reservation | null>();
        const keyOf = ({ deliveryId, attempt }: DeliveryJob): string => `${deliveryId}/${attempt}`;
        return queueIs((queue) => ({
            add: (jobs) => {
                for (const job of jobs) {
                    reservations.set(keyOf(job), job.reservation ?? reservations.get(keyOf(job)) ?? null);
                }
                return queue.add(jobs);
            },
            work: (collector, handler, options) =>
                queue.work(collector, (job) => handler({ ...job, reservation: reservations.get(keyOf(job)) ?? null }), options),
        }));
    },

    'a job that its own process begins, and that somebody else gets too': () =>
        queueIs((queue) => {
            const handlers = new Map<string, (job: DeliveryJob) => Promise<void>>();
            return {
                add: async (jobs) => {
                    for (const job of jobs.filter(({ reservation }) => reservation !== null)) {
                        // The clock of a process that has died meanwhile throws.
                        handlers
                            .get(job.collector)?.(job)
                            .catch(() => {});
                    }
                    await queue.add(jobs);
                },
                work: (collector, handler, options) => {
                    handlers.set(collector, handler);
                    return queue.work(collector, handler, options);
                },
            };
        }),

    'an attempt under a claim that was handed out, and is never named': () =>
        asked((store) => ({
            keepAlive: (session, duration, begun) => store.keepAlive(session, duration, { upTo: begun?.upTo ?? null, attempts: [] }),
        })),

    'a retry that comes in half of the time': () =>
        outcomesAre((recorded) => {
            const { next } = recorded;
            const early = next.state === 'pending' && next.delay !== 'fault' ? { ...next, delay: next.delay / 2 } : next;
            return { ...recorded, next: early };
        }),

    'a receiver whose Retry-After is not heard': () => outcomesAre((recorded) => ({ ...recorded, pause: null })),

    'a breaker that never opens': () => handedOutAsIf({ breakerAfter: 1_000_000 }),

    'a breaker that opens one failure too late': () => handedOutAsIf({ breakerAfter: 4 }),

    'a breaker that never recovers': () =>
        outcomesAre((recorded) => ({ ...recorded, health: recorded.health === 'success' ? 'none' : recorded.health })),

    'a window of one too many': () => handedOutAsIf({ window: 5 }),

    'a 2xx that comes late and is not heard': () =>
        rows((store) => {
            const { claims, noted } = remembering();
            return {
                claim: async (requests, session, maxBytes) => noted(await store.claim(requests, session, maxBytes)),
                recordOutcomes: async (outcomes, rules) => {
                    const held: boolean[] = [];
                    for (const outcome of outcomes) {
                        const { state } = (await store.get(outcome.deliveryId)) ?? {};
                        const holds = state === 'sending' && claims.get(outcome.deliveryId)?.token === outcome.token;
                        held.push(holds && (await store.recordOutcomes([outcome], rules))[0] === true);
                    }
                    return held;
                },
            };
        }),

    'a session that never ends': () =>
        rows((store) => ({
            keepAlive: (session, _, begun) => store.keepAlive(session, 1_000_000_000, begun),
            endSessions: async () => undefined,
        })),

    'a session of which nothing is heard after its beginning': () =>
        rows((store) => {
            const begun = new Set<string>();
            return {
                keepAlive: async (session, duration, named) => {
                    if (!begun.has(session.id)) {
                        begun.add(session.id);
                        return await store.keepAlive(session, duration, named);
                    }
                    return await store.now();
                },
            };
        }),

    'a body that is serialised again on its way out': () => {
        const again = (body: Uint8Array): Uint8Array => Buffer.from(JSON.stringify(JSON.parse(Buffer.from(body).toString()), null, 1));
        return messagesAre(() => (message) => ({ ...message, body: again(message.body) }));
    },

    'an exporter whose URL is remembered': () =>
        messagesAre(() => {
            const urls = new Map<string, string>();
            return (message) => {
                const url = urls.get(message.exporterId) ?? message.url;
                urls.set(message.exporterId, url);
                return { ...message, url };
            };
        }),

    'an exporter whose secret and schedule are remembered': () =>
        asked((store) => {
            const first = new Map<string, Claim['exporter']>();
            const asFirst = (claim: Claim): Claim => {
                const { sealedSecret, previousSecrets, schedule } = first.get(claim.exporter.id) ?? claim.exporter;
                const exporter = { ...claim.exporter, sealedSecret, previousSecrets, schedule };
                first.set(exporter.id, exporter);
                return { ...claim, exporter };
            };
            return {
                claim: async (...args) => (await store.claim(...args)).map((claim) => (claim === null ? null : asFirst(claim))),
            };
        }),

    'a secret that signs no more as soon as there is another': () =>
        asked((store) => ({
            claim: async (...args) =>
                (await store.claim(...args)).map((claim) =>
                    claim === null ? null : { ...claim, exporter: { ...claim.exporter, previousSecrets: [] } },
                ),
        })),

    'a process that claims whatever the settings are by now': () => sessionsAre(({ generation, ...session }) => session),

    'a process that begins what was handed out whatever the settings are by now': () => {
        const own = new Map<string, number | undefined>();
        return {
            above: ({ stores, queueFor }) => ({
                stores: {
                    ...stores,
                    deliveries: {
                        ...stores.deliveries,
                        keepAlive: (session, duration, begun) => {
                            own.set(JSON.parse(session.process).name, session.generation);
                            return stores.deliveries.keepAlive(session, duration, begun);
                        },
                    },
                },
                queueFor: (process) => {
                    const queue = queueFor(process);
                    const asOwn = ({ reservation, ...job }: DeliveryJob): DeliveryJob => ({
                        ...job,
                        reservation: reservation && { ...reservation, settings: own.get(process.name) ?? reservation.settings },
                    });
                    return {
                        ...queue,
                        work: (collector, handler, options) => queue.work(collector, (job) => handler(asOwn(job)), options),
                    };
                },
            }),
        };
    },

    'a process that does not look at the settings again': () => ({
        above: () => ({
            engineSees: (stores) => {
                let declared: Deployment | undefined;
                const declare: SettingsStore['declare'] = async (own) => {
                    declared = await stores.settings.declare(own);
                    return declared;
                };
                return { ...stores, settings: { declare, read: async () => declared ?? (await stores.settings.read()) } };
            },
        }),
    }),

    'a message in the name of another vendor': () =>
        messagesAre(() => (message) => ({
            ...message,
            headers: message.headers.map(([name, value]) => [name.replace('X-Acme-', 'X-Vendor-'), value] as const),
        })),

    'slots that are counted twice': () =>
        sessionsAre((session) => ({
            ...session,
            slots: Object.fromEntries(Object.entries(session.slots).map(([collector, count]) => [collector, 4 * count])),
        })),

    'slots of one collector that are those of all': () =>
        sessionsAre((session) => {
            const all = Object.values(session.slots).reduce((sum, count) => sum + count, 0);
            return { ...session, slots: all === 0 ? {} : { default: all, other: all } };
        }),

    'an exporter that is never slow': () =>
        outcomesAre((recorded) => ({
            ...recorded,
            outcome: { ...recorded.outcome, timings: { ...recorded.outcome.timings, total: 1 } },
        })),

    'a fault of ours that uses up a try': () =>
        outcomesAre((recorded) => {
            const { next, outcome } = recorded;
            return outcome.code === 'interrupted' && next.state === 'pending' ? { ...recorded, next: { ...next, delay: 1_000 } } : recorded;
        }),

    'a stop that does not wait for what is being sent': () =>
        queueIs((queue) => ({
            work: async (...args) => {
                await queue.work(...args);
                return { close: async () => undefined };
            },
        })),

    'a job that was lost and is never missed': () =>
        asked((store) => ({ sweep: async (options) => ({ ...(await store.sweep(options)), lost: [] }) })),

    'a job for the first of all that is handed out only': () =>
        asked((store) => ({
            accept: async (...args) => {
                const accepted = await store.accept(...args);
                return accepted.map((one) => ({ ...one, handedOut: one.handedOut.slice(0, 1) }));
            },
            dispatch: async (options) => {
                const { handedOut, ...left } = await store.dispatch(options);
                return { handedOut: handedOut.slice(0, 1), ...left };
            },
        })),

    'what is held and sent without a replay': () =>
        rows((store) => ({
            dispatch: async (options) => {
                for (const { id } of await store.list({ state: 'held', limit: 1000 })) {
                    await store.replay(id);
                }
                return await store.dispatch(options);
            },
        })),

    'a replay of many that replays what was delivered': () =>
        replaysAre((store, deliveries) => ({
            advance: async (limit) => {
                const open = await store.advance(limit);
                for (const { id } of open ? await deliveries.list({ state: 'delivered', limit: 1 }) : []) {
                    await deliveries.replay(id);
                }
                return open;
            },
        })),

    'a replay of many that heeds no rate': () =>
        replaysAre((store) => ({
            plan: async (replay) => ({ ...(await store.plan({ ...replay, rate: 1_000 })), rate: replay.rate }),
        })),

    'a replay of many that is done before it is': () =>
        replaysAre((store) => {
            const advanced = new Set<string>();
            const doneOnce = (replay: Replay): Replay =>
                replay.state === 'running' && advanced.has(replay.id) ? { ...replay, state: 'done' } : replay;
            return {
                advance: async (limit) => {
                    const open = await store.advance(limit);
                    for (const { id } of await store.list(1_000)) {
                        advanced.add(id);
                    }
                    return open;
                },
                list: async (limit) => (await store.list(limit)).map(doneOnce),
            };
        }),

    'a rate that is stored and not kept': () => ({
        below: ({ exporters, ...stores }) => {
            const rates = new Map<string, number | null>();
            const update: ExporterStore['update'] = async (id, { rate, ...patch }) => {
                rates.set(id, rate === undefined ? (rates.get(id) ?? null) : rate);
                return { ...(await exporters.update(id, patch)), rate: rates.get(id) ?? null };
            };
            return { ...stores, exporters: { ...exporters, update } };
        },
    }),

    'an event that is promised before its rows are committed': () => ({
        above: () => ({
            engineSees: ({ deliveries, ...stores }) => {
                const accept: DeliveryStore['accept'] = async (newEvents, { handOut: _, ...options } = {}) => {
                    const accepted = deliveries.accept(newEvents, options);
                    if (options.tx !== undefined || newEvents.some(({ recipients }) => 'exporterId' in recipients)) {
                        return await accepted;
                    }
                    accepted.catch(() => undefined);
                    return newEvents.map(({ event }) => ({ eventId: event.id, deliveries: [], handedOut: [] }));
                };
                return { ...stores, deliveries: { ...deliveries, accept } };
            },
        }),
    }),

    'a change of an exporter that is answered before other processes have heard of it': () => asked(() => ({ sessions: async () => [] })),

    'an event that is promised and not stored': () =>
        rows((store) => {
            let count = 0;
            const lost = '00000000-0000-4000-9999-000000000000';
            return {
                accept: async (events, options) => {
                    count += 1;
                    return count % 5 === 0
                        ? events.map(({ event }) => ({ eventId: event.id, deliveries: [lost], handedOut: [] }))
                        : await store.accept(events, options);
                },
            };
        }),

    'a time-out that counts as delivered': () => ({
        above: ({ senderFor }) => ({
            senderFor: (process) => {
                const sender = senderFor(process);
                const optimistic = (outcome: Outcome): Outcome =>
                    outcome.code === 'timeout' ? { ...outcome, code: 'delivered' } : outcome;
                return { ...sender, send: async (message) => optimistic(await sender.send(message)) };
            },
        }),
    }),
};

/** What only shows where an application has transactions of its own. */
export const transactionMutants: Readonly<Record<string, () => Mutant>> = {
    'a transaction of the application that is not joined': () => asked((store) => ({ accept: (newEvents) => store.accept(newEvents) })),
};

/** What only a message shows that ends whoever sends it. */
export const rareMutants: Readonly<Record<string, () => Mutant>> = {
    'a count of claims that ran out that is lost': () =>
        rows((store) => {
            const { claims, noted } = remembering();
            const sessionOf = new Map<string, string | null>();
            return {
                claim: async (requests, session, maxBytes) => {
                    const granted = noted(await store.claim(requests, session, maxBytes));
                    for (const claim of granted) {
                        sessionOf.set(claim?.token ?? '', session);
                    }
                    return granted;
                },
                sweep: async (options) => {
                    const alive = new Set<string | null>((await store.sessions()).map(({ id }) => id));
                    const dead = [...claims.values()].filter(({ token }) => !alive.has(sessionOf.get(token) ?? null));
                    const noted = dead.map(({ deliveryId, token, exporter }) => ({
                        deliveryId,
                        token,
                        exporterId: exporter.id,
                        ...FORGOTTEN,
                    }));
                    await store.recordOutcomes(noted, BREAKER);
                    return await store.sweep(options);
                },
            };
        }),
};

const FORGOTTEN = {
    begunAt: null,
    outcome: interrupted(0, 'Forgotten'),
    next: { state: 'pending', delay: 'fault' },
    health: 'none',
    pause: null,
    stopReason: null,
} as const;

const BREAKER = { after: 3, firstProbe: 5_000, maxProbe: 300_000, stopAfter: 1_000_000, window: 4 };
