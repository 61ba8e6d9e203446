import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * A sweep takes as many claims away as a process may have in flight, and not only as many as jobs are added at once: what several thousand attempts of
 * a dead process held was free a few hundred a second.
 */
const CLAIMS = [
    ['order by d.claim_expires_at\n        limit max_rows', 'order by d.claim_expires_at\n        limit 10 * max_rows'],
] as const;

export const claimsOfTheDead: Migration = { id: '0089-claims-of-the-dead', sql: rewritten('sweep_and_tell', CLAIMS) };
