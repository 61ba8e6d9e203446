import type { IndexMigration } from '../migrate.ts';

/**
 * What an attempt came to, out of the beginning of its outcome as it is written. Not by its key: what else an outcome has may be no text of PostgreSQL, and
 * who reads a key reads all of them.
 */
export const CODE = `substring(outcome::text from '^\\{ ?"code" ?: ?"([a-z_]+)"')`;

/** What is cheap to say of one that was delivered: that it begins otherwise. */
export const IN_VAIN = `outcome::text not like '{"code":"delivered"%'`;

/**
 * Attempts by what they came to: a delivery says so only of its last. One that was delivered pays for no more than to look at how its outcome begins. When
 * they began has no index: of all attempts it would take 0.8 µs for each, and two deliveries that end together would read two pages more.
 */
export const attemptsListed: IndexMigration = {
    id: '0079-attempts-listed',
    index: { name: 'attempts_in_vain', table: 'attempts', keys: `((${CODE}), started_at) where ${IN_VAIN}` },
};
