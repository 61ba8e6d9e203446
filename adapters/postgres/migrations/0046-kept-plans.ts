import type { Migration } from '../migrate.ts';

/**
 * Statements of a delivery's way that are inside functions are planned once per connection. Without this a few of them were planned anew for each
 * event, since the planner takes a plan for just these parameters to be a little cheaper: planning accept_events took longer than running it.
 * A function that is replaced later must be told so again.
 */
const FUNCTIONS = [
    'accept_events',
    'accept_chosen_events',
    'rooms_of',
    'hand_out_deliveries',
    'raise_waiting_marks',
    'raise_mark_of_flights',
    'claim_attempts',
    'finish_attempts',
    'note_successes',
    'apply_health',
    'keep_session_alive',
    'take_back_grants',
    'sweep_and_tell',
];

/** To be told of a function again by the step that replaces it. */
export const keepingPlan = (name: string): string => `alter function scanwire.${name} set plan_cache_mode = force_generic_plan;\n`;

const sql = FUNCTIONS.map(keepingPlan).join('');

export const keptPlans: Migration = { id: '0046-kept-plans', sql };
