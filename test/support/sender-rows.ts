import pg from 'pg';
import type { SenderUnderTest } from '../../bench/senders.ts';

/** How many rows of a table of a sender of the bench there are. */
export async function countOf({ store }: Pick<SenderUnderTest, 'store'>, rows: string): Promise<number> {
    const client = new pg.Client(store.urls.DATABASE_URL);
    await client.connect();
    const { rows: counted } = await client.query<{ count: number }>(`select count(*)::integer as count from ${rows}`);
    await client.end();
    return counted[0]?.count ?? 0;
}

/** Those of tests have the priority 0. */
export const DELIVERED = `scanwire.deliveries where stage = 'delivered' and priority > 0`;
