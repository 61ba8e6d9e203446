import type { Connection } from './connection.ts';

/** The most slots that are free once room was made: of strangers who come back as soon as they are ended, so many shake hands in a step and no more. */
const MAX_FREE = 25;
/** Whoever has a slot keeps it for as many steps at least, which are four seconds. */
const KEPT_STEPS = 40;

interface Waiting {
    readonly connection: Connection;
    readonly begin: () => void;
}

/**
 * Connections on which TLS has begun and from which no request has come have a slot each: OpenSSL takes some 30 KiB for one, three times what
 * it took before, and a client that means well asks as soon as it can. Where all slots are taken, the others wait with their hello.
 *
 * A client that has just come must not wait behind thousands of strangers, who may have its address. While strangers wait, those who come
 * are hardly more than those who were ended just before. So half of the room that is made is for those who come next, and the
 * other half for those who have come last. Addresses take turns.
 */
export class HandshakeSlots {
    readonly #max: number;
    readonly #maxFree: number;
    /** The one that has had its slot longest first. */
    readonly #taken = new Set<Connection>();
    /** By address, the one first whose turn it is; of each who has come last is last. */
    readonly #waiting = new Map<string, Waiting[]>();

    constructor(max: number) {
        this.#max = max;
        this.#maxFree = Math.min(Math.ceil(max / KEPT_STEPS), MAX_FREE);
    }

    /** Calls back once there is a slot for the connection: at once where one is free. */
    take(connection: Connection, begin: () => void): void {
        if (this.#free > 0) {
            this.#taken.add(connection);
            begin();
            return;
        }

        const others = this.#waiting.get(connection.address) ?? [];
        others.push({ connection, begin });
        this.#waiting.set(connection.address, others);
    }

    /** Its request has come, or it has ended. */
    release(connection: Connection): void {
        this.#taken.delete(connection);
        if (connection.stage !== 'slot') {
            return;
        }

        const others = this.#waiting.get(connection.address) ?? [];
        const index = others.findLastIndex((other) => other.connection === connection);
        if (index !== -1) {
            others.splice(index, 1);
            this.#forgetEmpty(connection.address, others);
        }
    }

    /** Where some wait for a slot, ends those that have had theirs longest, and lets as many begin. To be called in each step. */
    makeRoom(): void {
        if (this.#waiting.size === 0) {
            return;
        }

        for (const connection of this.#taken) {
            if (this.#free >= this.#maxFree) {
                break;
            }
            this.#taken.delete(connection);
            connection.socket.destroy();
        }
        for (let left = this.#free - Math.floor(this.#maxFree / 2); left > 0; left -= 1) {
            this.#beginNext();
        }
    }

    get #free(): number {
        return this.#max - this.#taken.size;
    }

    #beginNext(): void {
        for (const [address, others] of this.#waiting) {
            const last = others.pop();
            // Set again, it comes last.
            this.#waiting.delete(address);
            this.#waiting.set(address, others);
            this.#forgetEmpty(address, others);
            if (last !== undefined) {
                this.#taken.add(last.connection);
                last.begin();
                return;
            }
        }
    }

    #forgetEmpty(address: string, others: readonly Waiting[]): void {
        if (others.length === 0) {
            this.#waiting.delete(address);
        }
    }
}
