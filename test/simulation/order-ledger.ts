import type { Delivery, DeliveryStore, HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { type DeliveryModel, name } from './delivery-model.ts';
import type { Ledger } from './ledger.ts';

/** Says whether a delivery may not be handed out before others of its key, as the rows are. */
export type IsBehind = (id: string) => boolean;

/** Keeps account of what exporters get that are ordered, and says what must not be. */
export class OrderLedger {
    private readonly rows: Ledger;

    constructor(rows: Ledger) {
        this.rows = rows;
    }

    /** Which deliveries wait for others of their key: an older one that has not ended or holds the key, or any that is in flight. */
    async behind(ids: readonly string[], store: DeliveryStore): Promise<IsBehind> {
        const ordered = ids.map((id) => this.rows.entries.get(id)).filter((entry) => orderOf(entry) !== null);
        const keys = new Map<string, Delivery[]>();
        for (const row of await this.active(new Set(ordered.map((entry) => entry?.accepted.exporterId ?? '')), store)) {
            const key = this.keyOf(row.id);
            if (key !== null) {
                keys.set(key, [...(keys.get(key) ?? []), row]);
            }
        }
        return (id) => {
            const rows = keys.get(this.keyOf(id) ?? '') ?? [];
            return (rows[0] !== undefined && rows[0].id !== id) || rows.some((row) => row.id !== id && isInFlight(row));
        };
    }

    /** What is handed out has its turn. */
    async handedOut(rows: readonly HandedOut[], store: DeliveryStore): Promise<void> {
        const ordered = rows.filter(({ deliveryId }) => this.keyOf(deliveryId) !== null);
        const isBehind = await this.behind(
            ordered.map(({ deliveryId }) => deliveryId),
            store,
        );
        for (const { deliveryId } of ordered.filter((one) => isBehind(one.deliveryId))) {
            this.rows.violate(`${name(deliveryId)} is handed out before its turn: others of its key have not ended`);
        }
    }

    /** Of these exporters, the oldest first. */
    private async active(exporterIds: ReadonlySet<string>, store: DeliveryStore): Promise<readonly Delivery[]> {
        const rows = await Promise.all([...exporterIds].map((exporterId) => store.list({ exporterId, limit: 1000 })));
        return rows.flatMap((ofOne) =>
            ofOne.filter((row) => isActive(row) || this.rows.entries.get(row.id)?.holdsKey === true).toReversed(),
        );
    }

    private keyOf(id: string): string | null {
        return orderOf(this.rows.entries.get(id));
    }
}

/** What a delivery is in order with: its exporter and its key; null for one that waits for no other. */
export function orderOf(entry: DeliveryModel | undefined): string | null {
    const { orderKey = null, exporterId } = entry?.accepted ?? {};
    return orderKey === null ? null : `${exporterId} ${orderKey}`;
}

function isActive({ state }: Delivery): boolean {
    return state === 'pending' || state === 'queued' || state === 'sending';
}

function isInFlight({ state }: Delivery): boolean {
    return state === 'queued' || state === 'sending';
}
