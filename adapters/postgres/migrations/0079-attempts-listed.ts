import type { IndexMigration } from '../migrate.ts';

/**
 * What an attempt came to, out of the beginning of its outcome as it is written. Not by its key: what else an outcome has may be no text of PostgreSQL, and
 * who reads a key reads all of them.
 */
export const CODE = `substring(outcome::text from '^\\{ ?"code" ?: ?"([a-z_]+)"')`;

/** What is cheap to say of one that was delivered: that it begins otherwise. */
export const IN_VAIN = `outcome::text not like '{"code":"delivered"%'`;

/** Of deliveries that have ended: longer after they were accepted than these are numbered out of order, or nobody knows how long. */
export const ENDED_LATE = `(finished_at - accepted_at > interval '10 s' or accepted_at is null)`;

/** Of deliveries: that what was delivered is to be sent once more, and has not been tried yet. */
export const TO_REPEAT = `finished_at is null and last_code = 'delivered'`;

/** Of deliveries whose last attempt was not in vain: that one before may have been, which takes a retry, a replay or what was interrupted. */
export function triedAgain(of: '' | 'd.'): string {
    const took = `${of}finished_at - ${of}accepted_at > interval '1 s'`;
    return `${of}last_code = 'delivered' and (${of}priority = 2 or ${of}accepted_at is null or ${of}finished_at is null or ${took})`;
}

/**
 * Attempts by what they came to, which a delivery says only of its last, and deliveries by what may have other attempts than one right after they were
 * accepted. One that was delivered at once pays for no more than to look at these conditions: they name nothing that a claim changes, and an index of when
 * attempts began would take 0.8 µs for each, and two deliveries that end together would read two pages more.
 */
export const attemptsListed: readonly IndexMigration[] = [
    {
        id: '0079-attempts-listed-1-in-vain',
        index: { name: 'attempts_in_vain', table: 'attempts', keys: `((${CODE}), started_at) where ${IN_VAIN}` },
    },
    {
        id: '0079-attempts-listed-2-ended-late',
        index: { name: 'deliveries_ended_late', table: 'deliveries', keys: `(finished_at) where ${ENDED_LATE} or ${TO_REPEAT}` },
    },
    {
        id: '0079-attempts-listed-3-tried-again',
        index: { name: 'deliveries_tried_again', table: 'deliveries', keys: `(exporter_id, seq) where ${triedAgain('')}` },
    },
];
