import type { Migration } from '../migrate.ts';
import { handOutThatTellsEnds } from './0037-rates.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { acceptSingleBesideLate } from './0060-single.ts';

/**
 * A neighbour whose attempts never end had every delivery of all others look through what waits, in vain: what is kept
 * back by a window, a probe or a rate is let go by an end of its own exporter, and what shares places by the end of who shares them.
 *
 * The function that was here before stays for processes of the version before.
 */
const sql = `${handOutThatTellsEnds}${keepingPlan('hand_out_due_deliveries')}${acceptSingleBesideLate}`;

export const endsTold: Migration = { id: '0064-ends-told', sql };
