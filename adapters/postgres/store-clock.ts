import type { Clock } from '../../lib/clock.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { Time } from './database.ts';
import { prepared } from './prepared.ts';

/**
 * The time that is written into rows, as the database says it: clocks of two processes differ, and who asks for what has changed since a moment would
 * miss what the slower one writes.
 */
export type StoreClock = (client: Executor) => Promise<Date>;

const NOW: string = prepared('select scanwire.now() as now');

/** @param clock Takes its place, for tests. */
export function storeClock(clock: Clock | undefined): StoreClock {
    return clock === undefined ? databaseTime : async () => clock();
}

/** The time of the schema. */
export async function databaseTime(client: Executor): Promise<Date> {
    const { rows } = await client.query<{ now: Time }>(NOW);
    return new Date(rows[0]?.now as Time);
}
