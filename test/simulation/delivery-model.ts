import { createHmac } from 'node:crypto';
import type { Grant } from '../../lib/webhooks/grants.ts';
import type { Message } from '../../lib/webhooks/http-sender.ts';
import type { RecordedOutcome } from '../../lib/webhooks/store.ts';

/** An attempt as the store granted it. Times in milliseconds of the simulation. */
export interface Claimed {
    readonly token: string;
    readonly session: string | null;
    claimedAt: number;
    posted: boolean;
    /** When its process heard that the receiver had taken it. */
    heardAt: number | null;
    recordedAt: number | null;
    /** Its outcome was recorded while it held. */
    held: boolean;
    /** It was handed out with the delivery. */
    readonly granted: boolean;
}

/** What is known of a delivery when it is accepted. */
export interface AcceptedDelivery {
    readonly id: string;
    readonly eventId: string;
    readonly exporterId: string;
    /** A `test`, which is tried once. */
    readonly single: boolean;
    readonly body: string;
    readonly acceptedAt: number;
}

/** The delays of every exporter of the simulation between the tries of a delivery. Milliseconds. */
export const SCHEDULE: readonly number[] = [2_000, 5_000, 15_000, 40_000, 90_000];

/** Signs for every exporter of the simulation. */
export const SECRET = 'simulated secret';

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
    /** The state in which it has ended. */
    ended: string | null = null;
    /** How many times its receiver had it. */
    taken = 0;
    /** The last claim was found to have been taken away. */
    freed = false;
    /** The claim that it was handed out with last, while nobody has begun under it. */
    grant: Grant | null = null;
    /** Tokens of all such claims. */
    readonly tokens: Set<string> = new Set();
    readonly accepted: AcceptedDelivery;
    private replayedAfter = 0;
    private signature: string | null = null;

    constructor(accepted: AcceptedDelivery) {
        this.accepted = accepted;
    }

    /** How many claims in a row have run out, if the last one has; at most, since what was handed out may have been taken back. */
    get ranOut(): number {
        const held = this.claims.findLastIndex((one) => one.held);
        return this.claims.slice(Math.max(held + 1, this.replayedAfter)).filter(({ granted }) => !granted).length;
    }

    /** Claims since it was accepted or replayed: a replay takes a delivery that has ended, whoever may still be sending it. */
    get current(): readonly Claimed[] {
        return this.claims.slice(this.replayedAfter);
    }

    claim(token: string, session: string | null, now: number, granted = false): Claimed {
        Object.assign(this, { notBefore: 0, freed: false, grant: this.grant?.token === token || !granted ? null : this.grant });
        const claimed = { token, session, claimedAt: now, posted: false, heardAt: null, recordedAt: null, held: false, granted };
        this.claims.push(claimed);
        return claimed;
    }

    replay(): void {
        Object.assign(this, { ended: null, failures: 0, replayedAfter: this.claims.length, notBefore: 0 });
    }

    /** What follows from an outcome under its claim: the state by the rules. */
    follow({ code, status, retryAfter }: RecordedOutcome['outcome'], now: number): string {
        if (code === 'delivered') {
            this.ended = 'delivered';
        } else if (this.accepted.single) {
            this.ended = 'exhausted';
        } else if (code === 'interrupted') {
            this.notBefore = now + 1_000;
        } else {
            this.failures += 1;
            const short = code === 'client_error' && status !== 408 && status !== 425;
            const retries = code === 'gone' ? 0 : short ? SHORT_RETRIES : SCHEDULE.length;
            const delay = this.failures <= retries ? SCHEDULE[this.failures - 1] : undefined;
            this.ended = delay === undefined ? 'exhausted' : null;
            this.notBefore = now + Math.max(Math.floor((delay ?? 0) * (1 - JITTER)), retryAfter ?? 0);
        }
        return this.ended ?? 'pending';
    }

    /** Whether message id, bytes and signatures are those of what was accepted, and of the messages before. */
    fits({ body, headers }: Message): boolean {
        const values = new Map(headers.map(([header, value]) => [header.toLowerCase(), value]));
        const { eventId, body: accepted } = this.accepted;
        const signature = values.get('x-vendor-signature') ?? '';
        const signed = Buffer.concat([Buffer.from(`${eventId}.${values.get('webhook-timestamp')}.`), body]);
        const same = Buffer.from(body).toString() === accepted && signature === (this.signature ?? signature);
        this.signature = signature;
        return (
            same &&
            signature === hmac(body) &&
            values.get('webhook-id') === eventId &&
            values.get('webhook-signature') === `v1,${hmac(signed)}`
        );
    }
}

function hmac(bytes: Uint8Array): string {
    return createHmac('sha256', SECRET).update(bytes).digest('base64');
}

/** The end of an id, which is enough to tell the few of a simulation apart. */
export function name(id: string | undefined): string {
    return (id ?? 'nothing').slice(-4);
}
