import { createHmac } from 'node:crypto';
import type { Message } from '../../lib/webhooks/http-sender.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import type { Claim, DeliveryStore, Dispatched, ExporterStore, NewEvent, RecordedOutcome, Session } from '../../lib/webhooks/store.ts';
import { ExporterModel } from './exporter-model.ts';
import type { Wire } from './receivers.ts';
import { ATTEMPT_TIMEOUT, SETTINGS, type SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './timeline.ts';

/** An attempt as the store granted it. */
interface Claimed {
    readonly token: string;
    readonly session: string | null;
    readonly claimedAt: number;
    readonly expiresAt: number;
    posted: boolean;
    /** When its process heard that the receiver had taken it. */
    heardAt: number | null;
    recordedAt: number | null;
    /** Its outcome was recorded while it held. */
    held: boolean;
}

/** The signs of life of a session: without a gap from when until when they hold. */
interface Sign {
    readonly process: string;
    readonly since: number;
    readonly until: number;
}

/** A delivery as far as it is known. */
interface Entry {
    readonly id: string;
    readonly eventId: string;
    readonly exporterId: string;
    readonly single: boolean;
    readonly body: string;
    readonly acceptedAt: number;
    readonly claims: Claimed[];
    /** Attempts since it was accepted or replayed of which the receiver was to blame. */
    failures: number;
    /** How many claims there were when it was accepted or replayed. */
    replayedAfter: number;
    /** Not before, unless its exporter recovers. */
    notBefore: number;
    queuedAt: number | null;
    ended: string | null;
    taken: number;
    /** The last claim was found to have been taken away. */
    freed: boolean;
    signature: string | null;
}

/** The delays of every exporter of the simulation between the tries of a delivery. Milliseconds. */
export const SCHEDULE: readonly number[] = [2_000, 5_000, 15_000, 40_000, 90_000];

export const SECRET = 'simulated secret';

const JITTER = 0.2;
const SHORT_RETRIES = 4;
const POISONED_AFTER = 20;
const CLAIM_DURATION = ATTEMPT_TIMEOUT + 5_000;

/** With all well, what is known is recorded in so many milliseconds. */
const RECORDED_WITHIN = 4_000;

/** A test that is younger may still be under way. Milliseconds. */
const TEST_WITHIN = 60_000;

/** The last milliseconds of a stop are for giving back what was not finished. */
const GIVING_BACK = 1_000;

/** Keeps account of what stores and receivers are told, and says what must not be. */
export class Ledger implements Wire {
    readonly violations: string[] = [];
    readonly exporters: Map<string, ExporterModel> = new Map();
    readonly entries: Map<string, Entry> = new Map();
    /** Deliveries whose acceptance somebody was told of. */
    readonly promised: Set<string> = new Set();
    private readonly byMessage = new Map<string, Entry>();
    private readonly underWay = new Map<Message, Claimed>();
    private readonly sessions = new Map<string, Sign>();
    private readonly timeline: Timeline;
    private readonly processes: ReadonlyMap<string, SimulatedProcess>;
    /** When a call of the process to the store went wrong last. */
    private readonly troubled: ReadonlyMap<string, number>;

    constructor(timeline: Timeline, processes: ReadonlyMap<string, SimulatedProcess>, troubled: ReadonlyMap<string, number>) {
        this.timeline = timeline;
        this.processes = processes;
        this.troubled = troubled;
    }

    /** The stores, with everything that they are told and answer written down at the moment at which it has its effect. */
    watching({ exporters, deliveries }: WebhookStores): WebhookStores {
        return { exporters: this.watchedExporters(exporters), deliveries: this.watchedDeliveries(deliveries) };
    }

    /** Deliveries of an exporter that may still be sent. */
    open(exporterId?: string): readonly Entry[] {
        return [...this.entries.values()].filter((entry) => {
            return entry.ended === null && !entry.single && (exporterId === undefined || entry.exporterId === exporterId);
        });
    }

    /** Those that may still be sent, for people. */
    describe(exporterId?: string): string {
        return this.open(exporterId)
            .map(({ id, failures, claims, taken }) => `${name(id)} (${claims.length} claims, ${failures} failures, taken ${taken} times)`)
            .join(', ');
    }

    posted(process: SimulatedProcess, message: Message): void {
        const entry = this.entryOf(message);
        this.timeline.note(`POST ${name(entry?.id)} by ${process.name}`);
        if (entry === undefined) {
            this.violate('a message went out that nobody accepted');
            return;
        }

        const claimed = entry.claims.findLast((one) => !one.posted && this.holder(one) === process.name);
        if (claimed === undefined) {
            this.violate(`${name(entry.id)} went out without a claim`);
        } else {
            claimed.posted = true;
            this.underWay.set(message, claimed);
        }
        this.checkMessage(entry, message);
    }

    taken(message: Message): void {
        const entry = this.entryOf(message);
        if (entry !== undefined) {
            entry.taken += 1;
        }
    }

    heard(message: Message): void {
        const claimed = this.underWay.get(message);
        if (claimed !== undefined) {
            claimed.heardAt = this.timeline.now;
        }
    }

    /** What the rows say at the end, when nothing has been wrong for long. */
    async audit({ deliveries }: WebhookStores): Promise<void> {
        const rows = new Map((await deliveries.list({ limit: 1000 })).map((row) => [row.id, row]));
        for (const id of this.promised) {
            if (!rows.has(id)) {
                this.violate(`${name(id)} was promised and is lost`);
            }
        }
        for (const [id, { state }] of rows) {
            const entry = this.entries.get(id);
            if (entry?.single === true && this.timeline.now - entry.acceptedAt < TEST_WITHIN) {
                continue;
            }
            if (entry === undefined || !['delivered', 'exhausted', 'poisoned', 'cancelled'].includes(state)) {
                this.violate(`${name(id)} is ${state} at the end`);
            } else if (state === 'delivered' && entry.taken === 0) {
                this.violate(`${name(id)} is delivered, but its receiver never had it`);
            } else if (state === 'poisoned' && ranOut(entry) < POISONED_AFTER) {
                this.violate(`${name(id)} is poisoned after ${ranOut(entry)} claims in a row that ran out`);
            } else if (state === 'cancelled' && this.exporters.get(entry.exporterId)?.removed !== true) {
                this.violate(`${name(id)} is cancelled, but its exporter was not removed`);
            } else if (state === 'exhausted' && !entry.single && entry.ended !== 'exhausted') {
                this.violate(`${name(id)} is exhausted, but no outcome said so`);
            }
        }
        for (const entry of this.entries.values()) {
            for (const claimed of entry.claims) {
                this.checkRecorded(entry, claimed);
            }
        }
    }

    private watchedExporters(store: ExporterStore): ExporterStore {
        return {
            ...store,
            insert: async (exporter) => {
                await store.insert(exporter);
                this.exporters.set(exporter.id, new ExporterModel());
            },
            update: async (id, patch) => {
                const updated = await store.update(id, patch);
                const model = this.exporters.get(id);
                if (patch.state === 'running') {
                    model?.start();
                } else if (patch.state === 'stopped' && model !== undefined) {
                    model.running = false;
                }
                return updated;
            },
            remove: async (id) => {
                const removed = await store.remove(id);
                const model = this.exporters.get(id);
                if (removed && model !== undefined) {
                    model.removed = true;
                    for (const entry of [...this.entries.values()].filter(({ exporterId, ended }) => exporterId === id && ended === null)) {
                        entry.ended = 'cancelled';
                    }
                }
                return removed;
            },
        };
    }

    private watchedDeliveries(store: DeliveryStore): DeliveryStore {
        return {
            ...store,
            accept: async (newEvents, options) => {
                const accepted = await store.accept(newEvents, options);
                await this.accepted(newEvents, store);
                return accepted;
            },
            dispatch: async (options) => {
                const rows = await store.dispatch(options);
                await this.dispatched(rows, options.limit, store);
                return rows;
            },
            sweep: async (options) => {
                const rows = await store.sweep(options);
                await this.checkFreed(store);
                for (const entry of this.open().filter((one) => ranOut(one) >= POISONED_AFTER)) {
                    const { state } = (await store.get(entry.id)) ?? {};
                    entry.ended = state === 'poisoned' ? state : null;
                }
                return rows;
            },
            claim: async (requests, session, maxBytes) => {
                const claims = await store.claim(requests, session, maxBytes);
                for (const claim of claims) {
                    if (claim !== null) {
                        this.claimed(claim, session);
                    }
                }
                return claims;
            },
            recordOutcomes: async (outcomes, rules) => {
                const held = await store.recordOutcomes(outcomes, rules);
                for (const [index, outcome] of outcomes.entries()) {
                    await this.recorded(outcome, held[index] === true, store);
                }
                return held;
            },
            keepAlive: async (session, duration) => {
                await store.keepAlive(session, duration);
                this.sign(session, duration);
            },
            replay: async (id) => {
                const replayed = await store.replay(id);
                const entry = this.entries.get(id);
                if (entry !== undefined) {
                    Object.assign(entry, { ended: null, failures: 0, replayedAfter: entry.claims.length, notBefore: 0 });
                }
                return replayed;
            },
        };
    }

    private sign({ id, process }: Session, duration: number): void {
        const { now } = this.timeline;
        const before = this.sessions.get(id);
        const since = before === undefined || before.until <= now ? now : before.since;
        this.sessions.set(id, { process: JSON.parse(process).name, since, until: now + duration });
    }

    private async accepted(newEvents: readonly NewEvent[], store: DeliveryStore): Promise<void> {
        const events = new Map(newEvents.map((one) => [one.event.id, one]));
        for (const { id, eventId, exporterId } of await store.list({ limit: newEvents.length * this.exporters.size })) {
            const accepted = events.get(eventId);
            if (accepted !== undefined && !this.entries.has(id)) {
                const { event, recipients } = accepted;
                const known = {
                    id,
                    eventId,
                    exporterId,
                    single: 'exporterId' in recipients,
                    body: event.body,
                    acceptedAt: this.timeline.now,
                    queuedAt: null,
                };
                const entry: Entry = {
                    ...known,
                    claims: [],
                    failures: 0,
                    replayedAfter: 0,
                    notBefore: 0,
                    ended: null,
                    taken: 0,
                    freed: false,
                    signature: null,
                };
                this.entries.set(id, entry);
                this.byMessage.set(`${exporterId} ${eventId}`, entry);
            }
        }
    }

    private async dispatched(rows: readonly Dispatched[], limit: number, store: DeliveryStore): Promise<void> {
        const { now } = this.timeline;
        const handedOut = new Set(rows.map(({ deliveryId }) => deliveryId));
        const waiting = this.open().filter(({ id, queuedAt }) => queuedAt === null && !handedOut.has(id));
        if (rows.length === 0 && waiting.length === 0) {
            return;
        }

        this.timeline.note(`queued ${[...handedOut].map(name).join()}`);
        const inFlight = await inFlightOf(store);
        for (const { id, exporterId } of rows.length < limit ? waiting : []) {
            if ((inFlight.get(exporterId) ?? 0) < (this.exporters.get(exporterId)?.room(now) ?? 0)) {
                this.violate(`${name(id)} is not handed out, although there is room for it`);
            }
        }
        for (const { deliveryId } of rows) {
            const entry = this.entries.get(deliveryId);
            const model = this.exporters.get(entry?.exporterId ?? '');
            if (entry === undefined || model === undefined) {
                this.violate(`${name(deliveryId)} is handed out, but nobody accepted it`);
                continue;
            }

            const room = entry.single ? SETTINGS.window : model.room(now);
            const flying = inFlight.get(entry.exporterId) ?? 0;
            if (flying > room) {
                this.violate(`${flying} deliveries are in flight to an exporter that has room for ${room}`);
            }
            const recovered = model.recoveredAt !== null && entry.queuedAt !== null && entry.queuedAt < model.recoveredAt;
            if (now < entry.notBefore && !recovered) {
                this.violate(`${name(deliveryId)} is handed out ${(entry.notBefore - now).toFixed(0)} ms before it is due`);
            }
            entry.queuedAt = now;
        }
    }

    private claimed({ deliveryId, token, attemptSinceReplay, exporter }: Claim, session: string | null): void {
        const { now } = this.timeline;
        const entry = this.entries.get(deliveryId);
        this.timeline.note(`claimed ${name(deliveryId)} by ${this.sessions.get(session ?? '')?.process ?? session}`);
        if (entry === undefined) {
            this.violate(`${name(deliveryId)} is claimed, but nobody accepted it`);
            return;
        }
        if (entry.ended !== null && !(entry.single && entry.claims.length === 0)) {
            this.violate(`${name(deliveryId)} is claimed after it was ${entry.ended}`);
        }
        if (!entry.single && this.exporters.get(exporter.id)?.running === false) {
            this.violate(`${name(deliveryId)} is claimed although its exporter is stopped`);
        }
        if (!entry.single && attemptSinceReplay !== entry.failures + 1) {
            this.violate(`${name(deliveryId)} is at try ${attemptSinceReplay} after ${entry.failures} failures of its receiver`);
        }
        for (const before of entry.claims) {
            this.checkOver(entry, before);
            this.checkRecorded(entry, before);
        }
        entry.notBefore = 0;
        entry.freed = false;
        if (ranOut(entry) >= POISONED_AFTER) {
            this.violate(`${name(deliveryId)} is claimed after ${ranOut(entry)} claims in a row that ran out`);
        }
        entry.claims.push({
            token,
            session,
            claimedAt: now,
            expiresAt: now + CLAIM_DURATION,
            posted: false,
            heardAt: null,
            recordedAt: null,
            held: false,
        });
    }

    /** What is claimed by who has not said for too long that it is alive is free after a sweep. */
    private async checkFreed(store: DeliveryStore): Promise<void> {
        const { now } = this.timeline;
        for (const entry of this.open()) {
            const last = entry.claims.at(-1);
            const until = this.sessions.get(last?.session ?? '')?.until ?? 0;
            if (last !== undefined && !last.held && until < now && !entry.freed && (await store.get(entry.id))?.state === 'sending') {
                this.violate(`${name(entry.id)} is still claimed by ${this.holder(last)}, which is gone`);
            }
            entry.freed = entry.freed || (last !== undefined && until < now);
        }
    }

    /** Nobody else may claim what somebody holds who is alive, says so and is at work. */
    private checkOver(entry: Entry, { session, claimedAt, expiresAt, recordedAt }: Claimed): void {
        const { now } = this.timeline;
        const { process: holder = '', since = 0, until = 0 } = this.sessions.get(session ?? '') ?? {};
        const process = this.processes.get(holder);
        const isHeld = recordedAt === null && now < expiresAt && claimedAt >= since && now < until;
        if (process?.alive === true && isHeld && now < process.drainsUntil - GIVING_BACK) {
            this.violate(`${name(entry.id)} is claimed while ${holder} holds it`);
        }
    }

    /** Who has heard that a message was taken, and can, says so. */
    private checkRecorded(entry: Entry, claimed: Claimed): void {
        const { heardAt } = claimed;
        const holder = this.holder(claimed);
        const process = this.processes.get(holder);
        if (heardAt === null || process?.alive !== true) {
            return;
        }

        // Of several attempts of one process, each of which lost its claim to the next, a message does not say which it is of.
        const recorded = entry.claims.some((one) => one.recordedAt !== null && one.recordedAt >= heardAt && this.holder(one) === holder);
        if (recorded) {
            return;
        }

        const since = Math.max(heardAt, process.frozenUntil, this.troubled.get(process.name) ?? 0);
        if (this.timeline.now - since > RECORDED_WITHIN) {
            this.violate(`${name(entry.id)} was taken, which ${process.name} knows and has not recorded`);
        }
    }

    private async recorded({ deliveryId, token, outcome, next }: RecordedOutcome, held: boolean, store: DeliveryStore): Promise<void> {
        const { now } = this.timeline;
        const entry = this.entries.get(deliveryId);
        const claimed = entry?.claims.find((one) => one.token === token);
        this.timeline.note(`recorded ${name(deliveryId)} ${outcome.code} ${next.state} ${held ? '' : 'late'}`);
        if (entry === undefined || claimed === undefined) {
            this.violate(`the outcome of ${name(deliveryId)} is recorded without a claim`);
            return;
        }

        const again = claimed.recordedAt !== null;
        claimed.recordedAt = now;
        if (!held) {
            if (outcome.code === 'delivered' && !again && entry.ended === null && !entry.single) {
                await this.checkLate(entry, store);
            }
            return;
        }

        claimed.held = true;
        this.checkGivenUp(entry, claimed, outcome.code);
        const { code, status, retryAfter } = outcome;
        if (!entry.single) {
            this.exporters.get(entry.exporterId)?.hear({ code, status, retryAfter, claimedAt: claimed.claimedAt }, now);
        }
        this.follow(entry, code, status, retryAfter, next.state);
    }

    /** What has been sent is given up only at the end of a stop. */
    private checkGivenUp(entry: Entry, claimed: Claimed, code: string): void {
        const process = this.processes.get(this.holder(claimed));
        const givesUpAt = (process?.drainsUntil ?? 0) - GIVING_BACK;
        if (code === 'interrupted' && claimed.posted && this.timeline.now < givesUpAt) {
            this.violate(`${name(entry.id)} is given up by ${process?.name}, although its attempt could have ended`);
        }
    }

    private follow(entry: Entry, code: string, status: number | null, retryAfter: number | null, next: string): void {
        const { now } = this.timeline;
        if (code === 'delivered') {
            entry.ended = 'delivered';
        } else if (entry.single) {
            entry.ended = 'exhausted';
        } else if (code === 'interrupted') {
            entry.notBefore = now + 1_000;
        } else {
            entry.failures += 1;
            const short = code === 'client_error' && status !== 408 && status !== 425;
            const retries = code === 'gone' ? 0 : short ? SHORT_RETRIES : SCHEDULE.length;
            const delay = entry.failures <= retries ? SCHEDULE[entry.failures - 1] : undefined;
            entry.ended = delay === undefined ? 'exhausted' : null;
            entry.notBefore = now + Math.max(Math.floor((delay ?? 0) * (1 - JITTER)), retryAfter ?? 0);
        }
        if ((entry.ended ?? 'pending') !== next) {
            this.violate(`${name(entry.id)} is ${next} after ${code} and ${entry.failures} failures`);
        }
    }

    private async checkLate(entry: Entry, store: DeliveryStore): Promise<void> {
        const { state } = (await store.get(entry.id)) ?? {};
        if (state !== 'delivered' && state !== 'cancelled') {
            this.violate(`${name(entry.id)} was taken, as was heard late, and is ${state}`);
        }
        entry.ended = state ?? null;
    }

    private checkMessage(entry: Entry, { body, headers }: Message): void {
        const values = new Map(headers.map(([header, value]) => [header.toLowerCase(), value]));
        const signature = values.get('x-vendor-signature') ?? '';
        const [seconds, id] = [values.get('webhook-timestamp'), values.get('webhook-id')];
        const signed = Buffer.concat([Buffer.from(`${entry.eventId}.${seconds}.`), body]);
        const expected = [
            createHmac('sha256', SECRET).update(body).digest('base64'),
            createHmac('sha256', SECRET).update(signed).digest('base64'),
        ];
        const same = Buffer.from(body).toString() === entry.body && id === entry.eventId && signature === (entry.signature ?? signature);
        if (!same || signature !== expected[0] || values.get('webhook-signature') !== `v1,${expected[1]}`) {
            this.violate(`id, bytes or signature of ${name(entry.id)} are not those that were accepted`);
        }
        entry.signature = signature;
    }

    private entryOf({ exporterId, headers }: Message): Entry | undefined {
        const id = headers.find(([header]) => header === 'webhook-id')?.[1];
        return this.byMessage.get(`${exporterId} ${id}`);
    }

    private holder({ session }: Claimed): string {
        return this.sessions.get(session ?? '')?.process ?? '';
    }

    violate(what: string): void {
        this.timeline.note(`VIOLATION ${what}`);
        this.timeline.endTail();
        this.violations.push(what);
    }
}

/** How many deliveries of each exporter are in flight. */
async function inFlightOf(store: DeliveryStore): Promise<ReadonlyMap<string, number>> {
    const inFlight = new Map<string, number>();
    for (const state of ['queued', 'sending'] as const) {
        for (const { exporterId } of await store.list({ state, limit: 1000 })) {
            inFlight.set(exporterId, (inFlight.get(exporterId) ?? 0) + 1);
        }
    }
    return inFlight;
}

/** How many claims in a row have run out, if the last one has. */
function ranOut({ claims, replayedAfter }: Entry): number {
    return (
        claims.length -
        1 -
        Math.max(
            claims.findLastIndex(({ held }) => held),
            replayedAfter - 1,
        )
    );
}

/** The end of an id, which is enough to tell the few of a simulation apart. */
export function name(id: string | undefined): string {
    return (id ?? 'nothing').slice(-4);
}
