import type { Message } from '../../lib/webhooks/sending/http-sender.ts';
import { type Claimed, type DeliveryModel, name } from './delivery-model.ts';
import type { Ledger } from './ledger.ts';
import type { Wire } from './receivers.ts';
import type { SessionLedger } from './session-ledger.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import { START } from './timeline.ts';

/** A claim whose process has not heard of it after so many milliseconds is one of which nobody hears. */
const ANSWERED_WITHIN = 13_000;

/** Keeps account of what is sent, and says what must not be. */
export class WireLedger implements Wire {
    private readonly underWay = new Map<Message, Claimed>();
    private readonly rows: Ledger;
    private readonly sessions: SessionLedger;

    constructor(rows: Ledger) {
        this.rows = rows;
        this.sessions = rows.sessions;
    }

    begun(process: SimulatedProcess, message: Message): void {
        const entry = this.entryOf(message);
        if (entry === undefined) {
            return;
        }
        const own = this.ownClaim(entry, process, message);
        const claimed = own ?? this.reserved(entry, process, message);
        if (claimed !== undefined) {
            this.checkSettings(entry, claimed);
            claimed.begun = true;
            this.underWay.set(message, claimed);
        }
    }

    /**
     * What a process has claimed that this may be: while nobody has begun under what it was handed out with, only what fits. Of a claim whose answer
     * it never got it knows nothing: what it has just read under another one is of that.
     */
    private ownClaim(entry: DeliveryModel, process: SimulatedProcess, message: Message): Claimed | undefined {
        const readBy = entry.handedOut?.readBy ?? null;
        if (readBy !== null && this.sessions.holder(readBy) === process.name) {
            return undefined;
        }
        const own = entry.claims.filter((one) => {
            const since = this.rows.timeline.now - Math.max(one.claimedAt, process.frozenUntil);
            return !one.begun && this.sessions.holder(one.session) === process.name && since <= ANSWERED_WITHIN;
        });
        return own.findLast((one) => entry.fits(message, one)) ?? (entry.handedOut === null ? own.at(-1) : undefined);
    }

    /** Of an attempt that begins. A `test` is sent with what it was asked for with. */
    private checkSettings({ accepted }: DeliveryModel, { settings }: Claimed): void {
        const exporter = this.rows.exporters.get(accepted.exporterId);
        if (exporter === undefined || accepted.single) {
            return;
        }
        if (exporter.halted) {
            this.rows.violate(`${name(accepted.id)} begins although its exporter is stopped or removed, which somebody was told of`);
        } else if (!exporter.settingsSince(undefined).includes(settings)) {
            this.rows.violate(`${name(accepted.id)} begins with settings of its exporter of which somebody was told that they are others`);
        }
    }

    /** An attempt that begins under the claim that its delivery was handed out with. */
    private reserved(entry: DeliveryModel, process: SimulatedProcess, message: Message): Claimed | undefined {
        const { now } = this.rows.timeline;
        const { handedOut, accepted } = entry;
        const session = this.sessions.of(process.name);
        const exporter = this.rows.exporters.get(accepted.exporterId);
        const sets = (exporter?.settingsSince(handedOut?.settings) ?? []).map((settings) => ({
            claimedAt: now,
            settings,
            vendor: process.variant.vendor,
        }));
        const set = sets.find((one) => entry.fits(message, one)) ?? sets[0];
        if (handedOut === null || session === null || set === undefined) {
            return undefined;
        }

        const { reservation, generation } = handedOut;
        if (START + now >= reservation.beginBy) {
            this.rows.violate(`${name(accepted.id)} begins after the end of the claim that it was handed out with`);
        }
        for (const before of entry.current) {
            this.rows.checkOver(entry, before);
        }
        this.rows.checkOrder(entry);
        this.rows.asked(session);
        this.rows.checkGeneration(accepted.id, session, generation);
        return entry.claim({ token: reservation.token, session, reserved: true, ...set });
    }

    posted(process: SimulatedProcess, message: Message): void {
        const entry = this.entryOf(message);
        const claimed = this.underWay.get(message);
        this.rows.timeline.note(`POST ${name(entry?.accepted.id)} by ${process.name}`);
        if (entry === undefined || this.rows.isWithheld(entry)) {
            this.rows.violate('a message went out that nobody accepted');
        } else if (claimed === undefined) {
            this.rows.violate(`${name(entry.accepted.id)} went out without a claim`);
        } else if (!entry.fits(message, claimed)) {
            this.rows.violate(`${name(entry.accepted.id)} does not go out with what was accepted, and set when it was claimed`);
        } else {
            claimed.postedAt = this.rows.timeline.now;
        }
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
            claimed.heardAt = this.rows.timeline.now;
        }
    }

    private entryOf({ exporterId, headers }: Message): DeliveryModel | undefined {
        const id = headers.find(([header]) => header === 'webhook-id')?.[1];
        return this.rows.entryOf(exporterId, id);
    }
}
