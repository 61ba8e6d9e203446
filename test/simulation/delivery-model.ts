import { createHmac } from 'node:crypto';
import type { RecordedOutcome } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Reservation } from '../../lib/webhooks/dispatching/reservations.ts';
import type { Message } from '../../lib/webhooks/sending/http-sender.ts';
import { type ExporterSettings, OWN_HEADER } from './exporter-model.ts';

/** An attempt as the store allowed it. Times in milliseconds of the simulation. */
export interface Claimed {
    readonly token: string;
    readonly session: string | null;
    /** When it began, if it was handed out with the delivery. */
    claimedAt: number;
    /** With which it must be sent, whatever they are changed to meanwhile. */
    readonly settings: ExporterSettings;
    /** In the name of whom it must be sent. */
    readonly vendor: string;
    /** Its process sends. */
    begun: boolean;
    /** When its receiver was reached. */
    postedAt: number | null;
    /** When its process heard that the receiver had taken it. */
    heardAt: number | null;
    recordedAt: number | null;
    /** Its outcome was recorded while it held. */
    held: boolean;
    /** It was handed out with the delivery. */
    readonly reserved: boolean;
    /** The store knows that it has begun. */
    named: boolean;
}

/** A claim that a delivery was handed out with, and what was so at that moment. */
export interface HandedOut {
    readonly reservation: Reservation;
    /** Generation of the settings of the deployment. */
    readonly generation: number;
    /** What its exporter was set to; undefined once it is gone. */
    readonly settings: ExporterSettings | undefined;
    /** The session that has read last what it takes to send under it. */
    readBy: string | null;
}

/** What is known of a delivery when it is accepted. */
export interface AcceptedDelivery {
    readonly id: string;
    readonly eventId: string;
    readonly exporterId: string;
    /** A `test`, which is tried once. */
    readonly single: boolean;
    /** In the format of its exporter. */
    readonly body: string;
    readonly contentType: string;
    /** Where its exporter is ordered. */
    readonly orderKey: string | null;
    readonly acceptedAt: number;
}

/** So many claims in a row that run out, and a delivery is set aside. */
export const POISONED_AFTER = 20;

const JITTER = 0.2;
const SHORT_RETRIES = 4;

/** A delivery as it must be after what is known of it. */
export class DeliveryModel {
    readonly claims: Claimed[] = [];
    /** Attempts since it was accepted or replayed of which the receiver was to blame. */
    failures = 0;
    /** It is not due before, unless its exporter recovers. */
    notBefore = 0;
    queuedAt: number | null = null;
    /** The state in which it has ended, or is `held` until it is replayed. */
    ended: string | null;
    /** It has failed for good where its exporter keeps back what has its order key. */
    holdsKey = false;
    /** How many times it was replayed. */
    replays = 0;
    /** How many times its receiver had it. */
    taken = 0;
    /** The last claim was found to have been taken away. */
    freed = false;
    /** The claim that it was handed out with last, while nobody has begun under it. */
    handedOut: HandedOut | null = null;
    readonly accepted: AcceptedDelivery;
    private replayedAfter = 0;

    constructor(accepted: AcceptedDelivery, held: boolean) {
        this.accepted = accepted;
        this.ended = held ? 'held' : null;
    }

    /** How many claims in a row have run out, if the last one has. Those of which the store has not heard are taken back instead. */
    get ranOut(): number {
        const held = this.claims.findLastIndex((one) => one.held);
        return this.claims.slice(Math.max(held + 1, this.replayedAfter)).filter(({ named }) => named).length;
    }

    /** Claims since it was accepted or replayed: a replay takes a delivery that has ended, whoever may still be sending it. */
    get current(): readonly Claimed[] {
        return this.claims.slice(this.replayedAfter);
    }

    claim(claim: Pick<Claimed, 'token' | 'session' | 'claimedAt' | 'settings' | 'vendor' | 'reserved'>): Claimed {
        const unbegun = { begun: false, named: !claim.reserved, postedAt: null, heardAt: null, recordedAt: null, held: false };
        const claimed: Claimed = { ...claim, ...unbegun };
        Object.assign(this, { notBefore: 0, freed: false, handedOut: null });
        this.claims.push(claimed);
        return claimed;
    }

    replay(): void {
        this.replays += 1;
        Object.assign(this, { ended: null, holdsKey: false, failures: 0, replayedAfter: this.claims.length, notBefore: 0 });
    }

    /** What follows from an outcome under its claim: the state by the rules. */
    follow({ code, status, retryAfter }: RecordedOutcome['outcome'], { settings: { schedule } }: Claimed, now: number): string {
        if (code === 'delivered') {
            this.ended = 'delivered';
        } else if (this.accepted.single) {
            this.ended = 'exhausted';
        } else if (code === 'interrupted') {
            this.notBefore = now + 1_000;
        } else {
            this.failures += 1;
            const short = code === 'client_error' && status !== 408 && status !== 425;
            const retries = code === 'gone' ? 0 : short ? SHORT_RETRIES : schedule.length;
            const delay = this.failures <= retries ? schedule[this.failures - 1] : undefined;
            this.ended = delay === undefined ? 'exhausted' : null;
            this.notBefore = now + Math.max(Math.floor((delay ?? 0) * (1 - JITTER)), retryAfter ?? 0);
        }
        return this.ended ?? 'pending';
    }

    /** Whether message id and bytes are those of what was accepted, and all else as it was to be when the attempt was claimed. */
    fits({ url, body, headers }: Message, { settings, vendor, claimedAt }: Pick<Claimed, 'settings' | 'vendor' | 'claimedAt'>): boolean {
        const values = new Map(headers.map(([header, value]) => [header.toLowerCase(), value]));
        const { eventId, body: accepted, contentType } = this.accepted;
        const signed = Buffer.concat([Buffer.from(`${eventId}.${values.get('webhook-timestamp')}.`), body]);
        const valid = settings.secrets.filter(({ until }) => until > claimedAt).map(({ secret }) => secret);
        return (
            url === settings.url &&
            (values.get(OWN_HEADER.toLowerCase()) ?? null) === settings.header &&
            Buffer.from(body).toString() === accepted &&
            values.get('content-type') === contentType &&
            values.get('webhook-id') === eventId &&
            values.get(`x-${vendor.toLowerCase()}-signature`) === hmac(body, valid[0] ?? '') &&
            values.get('webhook-signature') === valid.map((secret) => `v1,${hmac(signed, secret)}`).join(' ')
        );
    }
}

function hmac(bytes: Uint8Array, secret: string): string {
    return createHmac('sha256', secret).update(bytes).digest('base64');
}

/** The end of an id, which is enough to tell the few of a simulation apart. */
export function name(id: string | undefined): string {
    return (id ?? 'nothing').slice(-4);
}
