import type { Migration } from '../migrate.ts';
import { handOutThatTellsLimits } from './0037-rates.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { acceptSingleBesideLate } from './0060-single.ts';

/**
 * A neighbour whose attempts never end had every delivery of all others look through what waits, in vain: an end of one's own is all that lets
 * go what is kept back by a window, a probe or a rate.
 *
 * The function that was here before stays for processes of the version before.
 */
const sql = `${handOutThatTellsLimits}${keepingPlan('hand_out_due_deliveries')}${acceptSingleBesideLate}`;

export const limitsTold: Migration = { id: '0064-limits-told', sql };
