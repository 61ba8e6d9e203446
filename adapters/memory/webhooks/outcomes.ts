import type { RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { BreakerRules } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { ResponseStore } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import { interrupt, move, openAttempt, retryAfterFault } from './delivery-transitions.ts';
import { applyHealth } from './exporter-health.ts';
import { type AttemptRow, type DeliveryRow, later, type WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.recordOutcomes` says. */
export function recordOutcomes(state: WebhookState, outcomes: readonly RecordedOutcome[], rules: BreakerRules): readonly boolean[] {
    return outcomes.map((recorded) => {
        const row = state.deliveries.get(recorded.deliveryId);
        const unnamed = row !== undefined && recorded.begunAt !== null && row.reservation?.token === recorded.token;
        const attempt = unnamed
            ? openAttempt(state, row, recorded.token, startOf(recorded, state.clock()))
            : attemptOf(state, row, recorded);
        if (row === undefined || attempt === null) {
            return false;
        }

        const held = unnamed || row.claim?.token === recorded.token;
        if (held) {
            complete(state, attempt, recorded, false);
            applyNextStep(state, row, recorded);
            applyHealth(state, attempt, recorded, rules);
        } else if (attempt.lost && !attempt.late) {
            complete(state, attempt, recorded, true);
            deliverLate(state, row, recorded);
        }
        return held;
    });
}

function startOf({ begunAt }: RecordedOutcome, now: Date): Date {
    return begunAt !== null && begunAt < now ? begunAt : now;
}

/** What was taken back unbegun, as it seemed, has no attempt yet; its number is that of one that is being made, unless this one ends that. */
function attemptOf(state: WebhookState, row: DeliveryRow | undefined, recorded: RecordedOutcome): AttemptRow | null {
    const known = row?.history.find(({ token }) => token === recorded.token);
    if (row === undefined || known !== undefined || recorded.begunAt === null) {
        return known ?? null;
    }
    if (row.state === 'sending') {
        if (recorded.outcome.code !== 'delivered') {
            return null;
        }
        interrupt(row, state.clock(), INTERRUPTIONS.delivered);
        move(state, row, 'pending', state.clock());
    }

    const { token, begunAt: startedAt } = recorded;
    const attempt = { number: row.attempts + 1, token, startedAt, finishedAt: null, outcome: null, lost: true, late: false };
    row.attempts += 1;
    row.history.push(attempt);
    return attempt;
}

function complete(state: WebhookState, attempt: AttemptRow, { outcome }: RecordedOutcome, late: boolean): void {
    Object.assign(attempt, { finishedAt: state.clock(), outcome: structuredClone(outcome), late });
}

function applyNextStep(state: WebhookState, row: DeliveryRow, { next, outcome }: RecordedOutcome): void {
    const now = state.clock();
    move(state, row, next.state, now);
    row.lastCode = outcome.code;
    row.expiredClaims = 0;
    if (next.state !== 'pending') {
        return;
    }

    if (next.delay === 'fault') {
        retryAfterFault(row, now);
    } else {
        row.dueAt = later(now, next.delay);
        row.faults = 0;
        row.priority = row.priority === 0 ? 0 : 2;
    }
}

/** A 2xx ends its delivery whenever it comes, unless that has ended by itself; who sends it once more does so in vain. */
function deliverLate(state: WebhookState, row: DeliveryRow, { outcome }: RecordedOutcome): void {
    if (outcome.code === 'delivered' && (state.active.has(row) || row.state === 'poisoned')) {
        const now = state.clock();
        if (row.state === 'sending') {
            interrupt(row, now, INTERRUPTIONS.delivered);
        }
        move(state, row, 'delivered', now);
        Object.assign(row, { lastCode: 'delivered', takenBack: false });
    }
}

/** Responses of the state; they go with their deliveries. */
export function responseStore(state: WebhookState): ResponseStore {
    return {
        async keep(responses) {
            for (const { deliveryId, token, body } of responses) {
                const row = state.deliveries.get(deliveryId);
                if (row !== undefined && !state.erased.has(row.event.id) && !row.responses.has(token)) {
                    row.responses.set(token, structuredClone(body));
                }
            }
        },

        async of(deliveryId) {
            const { history, responses } = state.deliveries.get(deliveryId) ?? { history: [], responses: new Map() };
            return new Map(
                history.flatMap(({ number, token, outcome }) => {
                    const body = outcome === null ? undefined : responses.get(token);
                    return body === undefined ? [] : [[number, structuredClone(body)]];
                }),
            );
        },
    };
}
