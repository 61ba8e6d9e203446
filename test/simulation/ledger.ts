import type { Claim, Delivery, DeliveryStore, RecordedOutcome, SweepOptions } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { BegunAttempt } from '../../lib/webhooks/dispatching/reservations.ts';
import type { NewEvent, Recipients } from '../../lib/webhooks/events/new-event.ts';
import type { PublishedEvent } from '../../lib/webhooks/events/publisher.ts';
import type { StoredExporter } from '../../lib/webhooks/exporters/exporter.ts';
import type { ExporterPatch } from '../../lib/webhooks/exporters/exporter-patch.ts';
import { unsealUrl } from '../../lib/webhooks/exporters/sealed-url.ts';
import { unsealHeaders } from '../../lib/webhooks/messages/message-headers.ts';
import { unsealSecrets } from '../../lib/webhooks/messages/signing-secret.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import type { BreakerRules } from '../../lib/webhooks/outcomes/breaker.ts';
import { type AcceptedDelivery, type Claimed, DeliveryModel, name, POISONED_AFTER } from './delivery-model.ts';
import { asksForPause, ExporterModel, type ExporterSettings, OWN_HEADER } from './exporter-model.ts';
import { orderOf } from './order-ledger.ts';
import { SessionLedger } from './session-ledger.ts';
import { ATTEMPT_TIMEOUT, KEYS, type SimulatedProcess, VARIANTS } from './simulated-process.ts';
import { START, type Timeline } from './timeline.ts';

const CLAIM_DURATION = ATTEMPT_TIMEOUT + 5_000;

/** With all well, what is known is recorded in so many milliseconds. */
const RECORDED_WITHIN = 4_000;

/** A test that is younger may still be under way. Milliseconds. */
const TEST_WITHIN = 60_000;

/** The last milliseconds of a stop are for giving back what was not finished. */
const GIVING_BACK = 1_000;

const NATIVE = 'application/json; charset=UTF-8';

type Made = Pick<AcceptedDelivery, 'body' | 'contentType'>;

interface AcceptedEvent extends Pick<AcceptedDelivery, 'single' | 'orderKey'> {
    /** What goes to those who have chosen no format. */
    readonly native: Made;
    /** What was made for the others, by their ids. */
    readonly formatted: ReadonlyMap<string, Made>;
}

/** Keeps account of what stores and receivers are told, and says what must not be. */
export class Ledger {
    readonly violations: string[] = [];
    readonly exporters: Map<string, ExporterModel> = new Map();
    readonly entries: Map<string, DeliveryModel> = new Map();
    /** Deliveries whose acceptance somebody was told of. */
    private readonly promised = new Set<string>();
    /** Events of transactions that have not been committed. */
    private readonly withheld = new Set<string>();
    /** What was to be accepted, by the ids of the events. */
    private readonly events = new Map<string, AcceptedEvent>();
    private readonly byMessage = new Map<string, DeliveryModel>();
    readonly sessions: SessionLedger;
    /** How many deliveries of all exporters may be handed out in a second, null for any. */
    readonly rate: number | null;
    readonly timeline: Timeline;
    private readonly processes: ReadonlyMap<string, SimulatedProcess>;
    /** When a call of the process to the store went wrong last. */
    private readonly troubled: ReadonlyMap<string, number>;

    constructor(
        timeline: Timeline,
        processes: ReadonlyMap<string, SimulatedProcess>,
        troubled: ReadonlyMap<string, number>,
        rate: number | null,
    ) {
        this.timeline = timeline;
        this.rate = rate;
        this.processes = processes;
        this.troubled = troubled;
        this.sessions = new SessionLedger(timeline, processes, troubled);
    }

    /** Somebody is told that an event has been accepted with these deliveries: they are there by then, whatever happens next. */
    promise({ eventId, deliveries }: Pick<PublishedEvent, 'eventId' | 'deliveries'>): void {
        if (!this.events.has(eventId) || !deliveries.every((id) => this.entries.has(id))) {
            this.violate(`event ${name(eventId)} is promised before it is stored`);
        }
        for (const id of deliveries) {
            this.promised.add(id);
        }
    }

    /** An event is there if, and not before, its transaction is committed. */
    withhold(eventId: string): void {
        this.withheld.add(eventId);
        if ([...this.entries.values()].some(({ accepted }) => accepted.eventId === eventId)) {
            this.violate('an event is there before its transaction is committed');
        }
    }

    /** The transaction of an event has ended. */
    async ended(eventId: string, committed: boolean, store: DeliveryStore): Promise<void> {
        if (committed) {
            this.withheld.delete(eventId);
            this.appeared(new Set([eventId]), await store.list({ limit: 1000 }));
        }
    }

    /** Whether its transaction has not been committed. */
    isWithheld({ accepted }: DeliveryModel): boolean {
        return this.withheld.has(accepted.eventId);
    }

    /** What a message to an exporter is of. */
    entryOf(exporterId: string, messageId: string | undefined): DeliveryModel | undefined {
        return this.byMessage.get(`${exporterId} ${messageId}`);
    }

    /** Deliveries of an exporter that may still be sent. */
    open(exporterId?: string): readonly DeliveryModel[] {
        return [...this.entries.values()].filter((entry) => {
            return entry.ended === null && !entry.accepted.single && (exporterId === undefined || entry.accepted.exporterId === exporterId);
        });
    }

    /** Those that may still be sent, for people. */
    describe(exporterId?: string): string {
        return this.open(exporterId)
            .map(
                ({ accepted, failures, claims, taken }) =>
                    `${name(accepted.id)} (${claims.length} claims, ${failures} failures, taken ${taken} times)`,
            )
            .join(', ');
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
            if (entry?.accepted.single === true && this.timeline.now - entry.accepted.acceptedAt < TEST_WITHIN) {
                continue;
            }
            if (state === 'held' && entry?.ended === 'held') {
                continue;
            }
            if (entry === undefined || !['delivered', 'exhausted', 'poisoned', 'cancelled'].includes(state)) {
                this.violate(`${name(id)} is ${state} at the end`);
            } else if (state === 'delivered' && entry.taken === 0) {
                this.violate(`${name(id)} is delivered, but its receiver never had it`);
            } else if (state === 'poisoned' && entry.ranOut < POISONED_AFTER) {
                this.violate(`${name(id)} is poisoned after ${entry.ranOut} claims in a row that ran out`);
            } else if (state === 'cancelled' && this.exporters.get(entry.accepted.exporterId)?.removed !== true) {
                this.violate(`${name(id)} is cancelled, but its exporter was not removed`);
            } else if (state === 'exhausted' && !entry.accepted.single && entry.ended !== 'exhausted') {
                this.violate(`${name(id)} is exhausted, but no outcome said so`);
            }
        }
        for (const entry of this.entries.values()) {
            for (const claimed of entry.claims) {
                this.checkRecorded(entry, claimed);
            }
        }
    }

    inserted(exporter: StoredExporter): void {
        const model = new ExporterModel(...opened(exporter), exporter.ordered);
        model.limit(exporter.rate);
        this.exporters.set(exporter.id, model);
    }

    updated(exporter: StoredExporter, { state, ...changes }: ExporterPatch): void {
        const model = this.exporters.get(exporter.id);
        if (Object.keys(changes).some((field) => field !== 'stopReason')) {
            this.timeline.note(`changed ${Object.keys(changes).join()}`);
            model?.change(...opened(exporter), this.timeline.now);
            model?.limit(exporter.rate);
            this.letGo(exporter);
        }
        if (state === 'running') {
            model?.start();
        } else if (state === 'stopped') {
            model?.stop();
        }
    }

    /** Once an exporter holds no key, what has failed for good holds none either. */
    private letGo({ id, ordered, afterExhausted }: StoredExporter): void {
        const model = this.exporters.get(id);
        const holdsKeys = ordered && afterExhausted === 'hold';
        Object.assign(model ?? {}, { holdsKeys });
        for (const entry of holdsKeys ? [] : this.entries.values()) {
            entry.holdsKey &&= entry.accepted.exporterId !== id;
        }
    }

    removed(id: string): void {
        const model = this.exporters.get(id);
        if (model !== undefined) {
            model.removed = true;
        }
        for (const entry of this.entries.values()) {
            if (entry.accepted.exporterId === id && (entry.ended === null || entry.ended === 'held')) {
                entry.ended = 'cancelled';
            }
        }
    }

    /** A session has begun these under claims that were handed out. */
    named(session: string, begun: readonly BegunAttempt[]): void {
        for (const { deliveryId, token } of begun) {
            const claimed = this.entries.get(deliveryId)?.claims.find((one) => one.token === token);
            if (claimed === undefined || this.holder(claimed) !== this.sessions.holder(session)) {
                this.violate(`${name(deliveryId)} is named, which was not begun`);
            } else {
                claimed.named = true;
            }
        }
    }

    async accepted(newEvents: readonly NewEvent[], store: DeliveryStore): Promise<void> {
        for (const { event, recipients, orderKey = null } of newEvents) {
            const native = { body: event.body, contentType: NATIVE };
            this.events.set(event.id, { native, formatted: madeFor(recipients), single: 'exporterId' in recipients, orderKey });
        }
        const newest = await store.list({ limit: newEvents.length * this.exporters.size });
        const eventIds = new Set(newEvents.map(({ event }) => event.id));
        this.checkHeld(newest.filter(({ id, eventId }) => eventIds.has(eventId) && !this.entries.has(id)));
        this.appeared(eventIds, newest);
    }

    /** Held is what is accepted for an exporter that an outcome has stopped, and nothing else. */
    private checkHeld(rows: readonly Delivery[]): void {
        for (const { id, eventId, exporterId, state } of rows) {
            const { stoppedByOutcome = false } = this.exporters.get(exporterId) ?? {};
            if ((state === 'held') !== (stoppedByOutcome && this.events.get(eventId)?.single === false)) {
                this.violate(`${name(id)} is ${state} when it is accepted, which does not fit its exporter`);
            }
        }
    }

    /** Deliveries are seen for the first time, if they are seen. */
    private appeared(eventIds: ReadonlySet<string>, rows: readonly Delivery[]): void {
        for (const { id, eventId, exporterId, state } of rows) {
            const event = this.events.get(eventId);
            if (event !== undefined && eventIds.has(eventId) && !this.entries.has(id)) {
                const { native, formatted, single } = event;
                const orderKey = this.exporters.get(exporterId)?.ordered === true ? event.orderKey : null;
                const made = formatted.get(exporterId) ?? native;
                const accepted = { id, eventId, exporterId, single, ...made, orderKey, acceptedAt: this.timeline.now };
                const entry = new DeliveryModel(accepted, state === 'held');
                this.entries.set(id, entry);
                this.byMessage.set(`${exporterId} ${eventId}`, entry);
            }
        }
    }

    claimed({ deliveryId, token, attemptSinceReplay, exporter }: Claim, session: string | null): void {
        const { now } = this.timeline;
        const entry = this.entries.get(deliveryId);
        this.timeline.note(`claimed ${name(deliveryId)} by ${this.sessions.get(session)?.process ?? session}`);
        if (entry === undefined) {
            this.violate(`${name(deliveryId)} is claimed, but nobody accepted it`);
            return;
        }
        if (entry.ended !== null && !(entry.accepted.single && entry.claims.length === 0)) {
            this.violate(`${name(deliveryId)} is claimed after it was ${entry.ended}`);
        }
        if (!entry.accepted.single && this.exporters.get(exporter.id)?.running === false) {
            this.violate(`${name(deliveryId)} is claimed although its exporter is stopped`);
        }
        if (!entry.accepted.single && attemptSinceReplay !== entry.failures + 1) {
            this.violate(`${name(deliveryId)} is at try ${attemptSinceReplay} after ${entry.failures} failures of its receiver`);
        }
        for (const before of entry.current) {
            this.checkOver(entry, before);
        }
        this.checkOrder(entry);
        for (const before of entry.claims) {
            this.checkRecorded(entry, before);
        }
        if (entry.ranOut >= POISONED_AFTER) {
            this.violate(`${name(deliveryId)} is claimed after ${entry.ranOut} claims in a row that ran out`);
        }
        const { settings } = this.exporters.get(exporter.id) ?? {};
        if (settings === undefined) {
            this.violate(`${name(deliveryId)} is claimed, but its exporter is not there`);
            return;
        }
        this.checkGeneration(deliveryId, session, this.sessions.generation);
        entry.claim({ token, session, claimedAt: now, settings, vendor: this.sessions.vendor, reserved: false });
    }

    /** What it takes to send was read under the claim that a delivery was handed out with. */
    read({ deliveryId, token }: Claim, session: string | null): void {
        const handedOut = this.entries.get(deliveryId)?.handedOut ?? null;
        if (handedOut?.reservation.token === token) {
            handedOut.readBy = session;
        }
    }

    /** Somebody wants to claim, or begins: who has other settings than the deployment sees that soon, and asks no more. */
    asked(session: string | null): void {
        if (this.sessions.isLongOutdated(session)) {
            this.violate(`${this.sessions.holder(session)} goes on with settings of another generation`);
        }
    }

    /** Only who sends with the settings of the deployment may claim: those of now, or of when the delivery was handed out with its claim. */
    checkGeneration(deliveryId: string, session: string | null, generation: number): void {
        if (!this.sessions.sendsWith(session, generation)) {
            this.violate(`${name(deliveryId)} is claimed by ${this.sessions.holder(session)} with settings of another generation`);
        }
    }

    async swept({ endedOnly = false }: SweepOptions, store: DeliveryStore): Promise<void> {
        if (!endedOnly) {
            await this.checkFreed(store);
        }
        for (const entry of this.open().filter(({ ranOut }) => ranOut >= POISONED_AFTER)) {
            const { state } = (await store.get(entry.accepted.id)) ?? {};
            entry.ended = state === 'poisoned' ? state : null;
            entry.holdsKey = entry.ended !== null && this.exporters.get(entry.accepted.exporterId)?.holdsKeys === true;
        }
    }

    /** What is claimed by who has not said for too long that it is alive is free after a sweep. */
    private async checkFreed(store: DeliveryStore): Promise<void> {
        const { now } = this.timeline;
        for (const entry of this.open()) {
            const last = entry.claims.at(-1);
            const until = this.sessions.get(last?.session ?? null)?.until ?? 0;
            if (
                last !== undefined &&
                !last.held &&
                until < now &&
                !entry.freed &&
                (await store.get(entry.accepted.id))?.state === 'sending'
            ) {
                this.violate(`${name(entry.accepted.id)} is still claimed by ${this.holder(last)}, which is gone`);
            }
            entry.freed = entry.freed || (last !== undefined && until < now);
        }
    }

    /** Of one key one attempt at a time is made. What has ended by a success that came late may be being sent once more. */
    checkOrder(entry: DeliveryModel): void {
        const order = orderOf(entry);
        const others = order === null ? [] : this.open(entry.accepted.exporterId).filter((one) => one !== entry && orderOf(one) === order);
        for (const other of others.filter((one) => one.current.some((claimed) => this.isHeld(claimed)))) {
            this.violate(`${name(entry.accepted.id)} begins while ${name(other.accepted.id)} of its key is being sent`);
        }
    }

    /** Nobody else may claim what somebody holds who is alive, says so and is at work. */
    checkOver(entry: DeliveryModel, claimed: Claimed): void {
        if (this.isHeld(claimed)) {
            this.violate(`${name(entry.accepted.id)} is claimed while ${this.holder(claimed)} holds it`);
        }
    }

    private isHeld({ session, claimedAt, recordedAt }: Claimed): boolean {
        const { now } = this.timeline;
        const { process: holder = '', since = 0, until = 0 } = this.sessions.get(session) ?? {};
        const process = this.processes.get(holder);
        const isHeld = recordedAt === null && now < claimedAt + CLAIM_DURATION && claimedAt >= since && now < until;
        return process?.alive === true && isHeld && now < process.drainsUntil - GIVING_BACK;
    }

    /** Who has heard that a message was taken, and can, says so. */
    private checkRecorded(entry: DeliveryModel, claimed: Claimed): void {
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
            this.violate(`${name(entry.accepted.id)} was taken, which ${process.name} knows and has not recorded`);
        }
    }

    async recorded(told: RecordedOutcome, held: boolean, rules: BreakerRules, store: DeliveryStore): Promise<void> {
        const { deliveryId, token, begunAt, outcome, next } = told;
        const { now } = this.timeline;
        const entry = this.entries.get(deliveryId);
        const claimed = entry?.claims.find((one) => one.token === token);
        this.timeline.note(`recorded ${name(deliveryId)} ${outcome.code} ${next.state} ${held ? '' : 'late'}`);
        if (entry === undefined || claimed === undefined) {
            this.violate(`the outcome of ${name(deliveryId)} is recorded without a claim`);
            return;
        }

        // The process knows the store's time as it is at the latest.
        claimed.claimedAt = begunAt === null ? claimed.claimedAt : Math.min(now, begunAt.getTime() - START);
        const again = claimed.recordedAt !== null;
        claimed.recordedAt = now;
        if (!held) {
            if (outcome.code === 'delivered' && !again && entry.ended === null && !entry.accepted.single) {
                await this.checkLate(entry, store);
            }
            return;
        }

        claimed.held = true;
        this.checkGivenUp(entry, claimed, outcome.code);
        const { code, status, retryAfter } = outcome;
        if (!entry.accepted.single) {
            const model = this.exporters.get(entry.accepted.exporterId);
            model?.hear({ code, status, retryAfter, claimedAt: claimed.claimedAt }, now, windowOf(rules));
            if (code !== 'interrupted' && !asksForPause(outcome)) {
                const ofReceiver = claimed.heardAt === null ? null : claimed.heardAt - (claimed.postedAt ?? claimed.heardAt);
                model?.answered(outcome.timings.total, ofReceiver, code === 'delivered');
            }
        }
        const followed = entry.follow(outcome, claimed, now);
        entry.holdsKey = followed === 'exhausted' && this.exporters.get(entry.accepted.exporterId)?.holdsKeys === true;
        if (followed !== next.state) {
            this.violate(`${name(deliveryId)} is ${next.state} after ${code} and ${entry.failures} failures, and not ${followed}`);
        }
    }

    /** What has been sent is given up only at the end of a stop. */
    private checkGivenUp(entry: DeliveryModel, claimed: Claimed, code: string): void {
        const holder = this.holder(claimed);
        const process = this.processes.get(holder);
        // Of several attempts of one process a message does not say which it is of.
        const single = entry.claims.filter((one) => this.holder(one) === holder).length === 1;
        const givesUpAt = (process?.drainsUntil ?? 0) - GIVING_BACK;
        if (code === 'interrupted' && claimed.postedAt !== null && single && this.timeline.now < givesUpAt) {
            this.violate(`${name(entry.accepted.id)} is given up by ${process?.name}, although its attempt could have ended`);
        }
    }

    private async checkLate(entry: DeliveryModel, store: DeliveryStore): Promise<void> {
        const { state } = (await store.get(entry.accepted.id)) ?? {};
        if (state !== 'delivered' && state !== 'cancelled') {
            this.violate(`${name(entry.accepted.id)} was taken, as was heard late, and is ${state}`);
        }
        entry.ended = state ?? null;
    }

    private holder({ session }: Claimed): string {
        return this.sessions.holder(session);
    }

    violate(what: string): void {
        this.timeline.note(`VIOLATION ${what}`);
        this.timeline.endTail();
        this.violations.push(what);
    }
}

/** What was made of an event for those who have a format of their own. */
function madeFor(recipients: Recipients): ReadonlyMap<string, Made> {
    const { subscribers = [] } = 'types' in recipients ? recipients : { subscribers: [{ message: null, ...recipients }] };
    return new Map(subscribers.flatMap(({ exporterId, message }) => (message === null ? [] : [[exporterId, message] as const])));
}

/** The window of one of the settings that there are, whatever is asked for. */
export function windowOf({ window }: { readonly window: number }): number {
    return VARIANTS.some((variant) => variant.window === window) ? window : VARIANTS[0].window;
}

/** What an exporter is set to, out of what is sealed. */
function opened(exporter: StoredExporter): [settings: Omit<ExporterSettings, 'secrets'>, secret: string] {
    const { collector, schedule } = exporter;
    const url = unsealUrl(exporter, KEYS);
    const header = unsealHeaders(exporter, KEYS).find(([own]) => own === OWN_HEADER)?.[1] ?? null;
    const [secret] = unsealSecrets(exporter, KEYS, new Date(START));
    return [{ url, collector, schedule: schedule ?? [], header }, secret];
}
