import type { Delivery, DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay } from '../../lib/webhooks/deliveries/replays.ts';
import { type DeliveryModel, name } from './delivery-model.ts';
import type { Ledger } from './ledger.ts';
import { START } from './timeline.ts';

/** A replay, and what was there when it was planned. */
interface Planned {
    readonly replay: Replay;
    readonly plannedAt: number;
    /** What had been accepted by then. */
    readonly known: ReadonlySet<string>;
    /** What had ended in a way that it is for, with how often that had been replayed by then. */
    readonly chosen: ReadonlyMap<DeliveryModel, number>;
    open: boolean;
}

/** Keeps account of replays of many deliveries, and says what must not be. */
export class ReplayLedger {
    private readonly planned = new Map<string, Planned>();
    /** How many deliveries they have replayed, by exporter. */
    private readonly counts = new Map<string, number>();
    private readonly rows: Ledger;

    constructor(rows: Ledger) {
        this.rows = rows;
    }

    async plan(replay: Replay, store: DeliveryStore): Promise<void> {
        this.rows.timeline.note(`replay of ${replay.total} planned`);
        const known = new Set(this.rows.entries.keys());
        const ended = (await this.deliveriesOf(replay.exporterId, store)).filter((row) => known.has(row.id) && isFor(replay, row));
        const chosen = new Map(ended.flatMap(({ id }) => this.entryWithReplays(id)));
        if (replay.total < chosen.size) {
            this.rows.violate(`a replay has ${replay.total} deliveries, of ${chosen.size} that have ended so`);
        }
        this.planned.set(replay.id, { replay, plannedAt: this.rows.timeline.now, known, chosen, open: true });
    }

    /** Lets those that are open go on, and looks at what that has done. */
    async advance(goOn: () => Promise<boolean>, store: DeliveryStore): Promise<boolean> {
        const exporterIds = new Set(this.open().map(({ replay }) => replay.exporterId));
        const before = new Map<string, readonly Delivery[]>();
        for (const exporterId of exporterIds) {
            before.set(exporterId, await this.deliveriesOf(exporterId, store));
        }
        const anyOpen = await goOn();
        for (const [exporterId, rows] of before) {
            const after = new Map((await this.deliveriesOf(exporterId, store)).map((row) => [row.id, row]));
            for (const row of rows) {
                this.check(row, after.get(row.id));
            }
            this.checkRate(exporterId);
        }
        this.learn((await store.replays?.list(1_000)) ?? []);
        return anyOpen;
    }

    /** What is said of replays. */
    learn(replays: readonly Replay[]): void {
        for (const { id, state, done, total } of replays) {
            if (done > total) {
                this.rows.violate(`${name(id)} has replayed ${done} of ${total}`);
            }
            const planned = this.planned.get(id);
            if (planned?.open && state !== 'running') {
                planned.open = false;
                this.checkDone(planned, state);
            }
        }
    }

    /** What they say at the end. */
    async audit({ replays }: DeliveryStore): Promise<void> {
        const counts = new Map<string, number>();
        for (const { exporterId, state, done } of (await replays?.list(1_000)) ?? []) {
            counts.set(exporterId, (counts.get(exporterId) ?? 0) + done);
            if (state === 'running') {
                this.rows.violate('a replay goes on at the end');
            }
        }
        for (const [exporterId, count] of this.counts) {
            if (counts.get(exporterId) !== count) {
                this.rows.violate(`${count} deliveries were replayed, and replays say ${counts.get(exporterId)}`);
            }
        }
    }

    private check(before: Delivery, after: Delivery | undefined): void {
        const { now } = this.rows.timeline;
        const waited = before.state === 'pending' && after?.state === 'pending';
        const changed = waited ? before.dueAt.getTime() !== after.dueAt.getTime() : before.state !== after?.state;
        if (!changed) {
            return;
        }

        const asked = this.open().some(({ replay, known }) => {
            return known.has(before.id) && (isFor(replay, before) || (waited && before.exporterId === replay.exporterId));
        });
        if (!asked || after?.state !== 'pending' || after.dueAt.getTime() !== START + now) {
            this.rows.violate(`${name(before.id)} is ${after?.state} and was ${before.state} before a replay went on`);
        }
        this.counts.set(before.exporterId, (this.counts.get(before.exporterId) ?? 0) + 1);
        this.rows.timeline.note(`replayed ${name(before.id)}`);
        this.rows.entries.get(before.id)?.replay();
    }

    /** On the average over the time since they were planned, and a second's worth more at once. */
    private checkRate(exporterId: string): void {
        const own = [...this.planned.values()].filter(({ replay }) => replay.exporterId === exporterId);
        const most = own.reduce((sum, { replay, plannedAt }) => sum + replay.rate * (1 + (this.rows.timeline.now - plannedAt) / 1_000), 0);
        const count = this.counts.get(exporterId) ?? 0;
        if (count > most) {
            this.rows.violate(`${count} deliveries were replayed, and rates allow ${most}`);
        }
    }

    /** What it was for has been replayed by the time at which it is done, by whomever, or is gone. */
    private checkDone({ replay, chosen }: Planned, state: Replay['state']): void {
        for (const [entry, replays] of state === 'done' ? chosen : []) {
            if (entry.replays === replays && entry.ended !== 'cancelled') {
                this.rows.violate(`${name(entry.accepted.id)} was to be replayed by ${name(replay.id)}, which is done`);
            }
        }
    }

    private entryWithReplays(id: string): readonly [DeliveryModel, number][] {
        const entry = this.rows.entries.get(id);
        return entry === undefined ? [] : [[entry, entry.replays]];
    }

    /** Whether any goes on: between two of its deliveries there is none on its way. */
    anyGoesOn(): boolean {
        return this.open().length > 0;
    }

    private open(): readonly Planned[] {
        return [...this.planned.values()].filter(({ open }) => open);
    }

    /** Tests aside. */
    private async deliveriesOf(exporterId: string, store: DeliveryStore): Promise<readonly Delivery[]> {
        return (await store.list({ exporterId, limit: 1_000 })).filter(({ kind }) => kind !== 'test');
    }
}

/** Whether it has ended in a way that the replay is for. */
function isFor({ exporterId, failedSince }: Replay, delivery: Delivery): boolean {
    const { state, finishedAt } = delivery;
    if (failedSince === null) {
        return delivery.exporterId === exporterId && state === 'held';
    }
    const failed = state === 'exhausted' || state === 'poisoned';
    return delivery.exporterId === exporterId && failed && finishedAt !== null && finishedAt >= failedSince;
}
