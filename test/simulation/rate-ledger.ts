import { name } from './delivery-model.ts';
import type { Ledger } from './ledger.ts';

/** A delivery that could go, had the rate of the deployment not been used up, or that went. */
interface Going {
    readonly id: string;
    readonly exporterId: string;
}

/** A retry that could go. */
interface GoingRetry extends Going {
    /** How many deliveries of its exporter may be in flight. */
    readonly places: number;
}

/** A second, of which what is not used up is lost. Milliseconds. */
const SPAN = 1_000;

/** Milliseconds by which sums of parts of a second differ. */
const ROUNDED = 0.01;

/** What is less likely than this does not happen: retries go before first tries by lot. */
const UNLIKELY = Math.log(1e-6);

/** The rate of the deployment: how much may be handed out, to whom in turn, and how much of it to retries. */
export class RateLedger {
    private readonly rows: Ledger;
    private paidUntil = Number.NEGATIVE_INFINITY;
    /** Logarithm of how likely it is that retries of an exporter have gone so often in a row while its first tries waited. */
    private readonly good = new Map<string, number>();
    /** Logarithm of how likely it is that no retry has gone for so long, and when that was looked at last. */
    private bad: { readonly luck: number; readonly at: number } = { luck: 0, at: -1 };

    constructor(rows: Ledger) {
        this.rows = rows;
    }

    /** As the stores say it: in whole milliseconds. */
    private get now(): number {
        return Math.floor(this.rows.timeline.now);
    }

    /** How many more it lets be handed out by now: so many at the most, or, with parts of a millisecond in doubt, at the `least`. */
    left(least = false): number {
        const { rate } = this.rows;
        const unpaid = this.now - Math.max(this.paidUntil, this.now - SPAN);
        return rate === null ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor((rate * (unpaid + (least ? -ROUNDED : ROUNDED))) / 1_000));
    }

    /** So many are handed out, tests included. */
    handedOut(count: number): void {
        const { rate } = this.rows;
        if (rate === null || count === 0) {
            return;
        }
        this.paidUntil = Math.max(this.paidUntil, this.now - SPAN) + (count * 1_000) / rate;
        if (this.paidUntil > this.now + ROUNDED) {
            this.rows.violate(`${count} deliveries are handed out, more than the rate of the deployment allows`);
        }
    }

    /**
     * It was used up by what was handed out, of at most `most`.
     *
     * @param waiting First tries that could go as well.
     * @param retries Those that could go as well.
     */
    usedUp(
        most: number,
        handedOut: readonly Going[],
        { waiting, retries }: { readonly waiting: readonly Going[]; readonly retries: readonly GoingRetry[] },
    ): void {
        const ordinary = handedOut.filter(({ id }) => this.rows.entries.get(id)?.accepted.single === false);
        const gone = ordinary.filter(({ id }) => this.isRetry(id));
        const first = ordinary.filter(({ id }) => this.isFirst(id));
        for (const { id, exporterId } of waiting) {
            const own = (one: Going): boolean => one.exporterId === exporterId;
            const others = first.map((one) => one.exporterId);
            const twice = others.some((other, index) => other !== exporterId && others.indexOf(other) < index);
            if (!handedOut.some(own) && twice) {
                this.rows.violate(`${name(id)} waits for the rate of the deployment, of which another exporter gets twice as much`);
            }
            if (gone.filter(own).length > Math.floor((most + 7) / 8)) {
                this.rows.violate(`${name(id)} waits for the rate of the deployment, of which retries get more than an eighth`);
            }
        }
        for (const exporterId of new Set(waiting.map((one) => one.exporterId))) {
            this.drawGood(most, exporterId, { gone, first });
        }
        this.drawLot(most, gone, retries);
    }

    /** Retries do not go before first tries of their exporter again and again: each time they have a chance of an eighth of what goes. */
    private drawGood(
        most: number,
        exporterId: string,
        { gone, first }: { readonly gone: readonly Going[]; readonly first: readonly Going[] },
    ): void {
        const own = (one: Going): boolean => one.exporterId === exporterId;
        if (first.some(own)) {
            this.good.delete(exporterId);
        } else if (gone.some(own)) {
            const luck = (this.good.get(exporterId) ?? 0) + Math.log(Math.min(most, 8) / 8);
            this.good.set(exporterId, luck);
            if (luck < UNLIKELY) {
                this.rows.violate(`first tries of ${exporterId.slice(-2)} wait for the rate of the deployment, which retries use up`);
                this.good.delete(exporterId);
            }
        }
    }

    /** Retries are not passed over for ever. Each has a chance of at least an eighth for each that its exporter, and the rate, has room for. */
    private drawLot(most: number, gone: readonly Going[], retries: readonly GoingRetry[]): void {
        const { now } = this;
        if (gone.length > 0) {
            this.bad = { luck: 0, at: now };
        } else if (retries.length > 0 && this.bad.at !== now) {
            const chance = Math.min(7, most, ...retries.map(({ places }) => places)) / 8;
            this.bad = { luck: this.bad.luck + Math.log(1 - chance), at: now };
        }
        if (this.bad.luck < UNLIKELY) {
            this.rows.violate(
                `${retries.map(({ id }) => name(id)).join()} wait for the rate of the deployment, of which retries get nothing`,
            );
            this.bad = { luck: 0, at: now };
        }
    }

    /** Whether it was tried before, since it was replayed if it was. */
    isRetry(id: string): boolean {
        return (this.rows.entries.get(id)?.failures ?? 0) > 0;
    }

    /** What is replayed is either, by how it was chosen. */
    private isFirst(id: string): boolean {
        const { failures = 0, replays = 0 } = this.rows.entries.get(id) ?? {};
        return failures + replays === 0;
    }
}
