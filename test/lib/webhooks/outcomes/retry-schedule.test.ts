import t from 'tap';
import { OUTCOME_CODES, type OutcomeCode } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { DEFAULT_SCHEDULE, type EndedAttempt, nextState } from '../../../../lib/webhooks/outcomes/retry-schedule.ts';

interface Circumstances extends Partial<Pick<EndedAttempt, 'singleAttempt' | 'url'>> {
    readonly status?: number | null;
    readonly retryAfter?: number | null;
    readonly random?: number;
}

/** Milliseconds until the next try, `fault` for the back-off of our own faults, or the state in which the delivery ends. */
function after(code: OutcomeCode, attemptSinceReplay: number, circumstances: Circumstances = {}): string | number {
    const { status = null, retryAfter = null, random = 0.5, singleAttempt = false, url = 'https://example.com/' } = circumstances;
    const outcome = { code, status, retryAfter };
    const step = nextState({ outcome, url, schedule: DEFAULT_SCHEDULE, attemptSinceReplay, singleAttempt, random: () => random });
    return step.state === 'pending' ? step.delay : step.state;
}

t.test('walks through the schedule and ends exhausted', async (t) => {
    const delays = Array.from({ length: 10 }, (_, index) => after('server_error', index + 1));
    t.strictSame(delays, [5e3, 300e3, 1800e3, 7200e3, 18000e3, 36000e3, 50400e3, 72000e3, 86400e3, 'exhausted']);
    t.equal(after('delivered', 1), 'delivered');
});

t.test('spreads each delay by a fifth to either side', async (t) => {
    t.equal(after('server_error', 1, { random: 0 }), 4000);
    t.equal(after('server_error', 1, { random: 1 }), 6000);
});

t.test('takes Retry-After as a floor', async (t) => {
    t.equal(after('server_error', 1, { retryAfter: 60_000 }), 60_000);
    t.equal(after('server_error', 2, { retryAfter: 60_000 }), 300_000);
});

t.test('gives a single attempt no other', async (t) => {
    t.equal(after('server_error', 1, { singleAttempt: true }), 'exhausted');
    t.equal(after('delivered', 1, { singleAttempt: true }), 'delivered');
});

t.test('gives a refused message fewer tries, unless the refusal passes by itself', async (t) => {
    t.equal(after('client_error', 4, { status: 404 }), 7200e3);
    t.equal(after('client_error', 5, { status: 404 }), 'exhausted');
    t.equal(after('client_error', 5, { status: 408 }), 18000e3);
    t.equal(after('client_error', 5, { status: 425 }), 18000e3);
});

t.test('gives up what only a change of the exporter can help', async (t) => {
    t.equal(after('gone', 1, { status: 410 }), 'exhausted');
    t.equal(after('invalid_exporter', 1), 'exhausted');
    t.equal(after('invalid_message', 1), 'exhausted');
    for (const url of ['http://10.0.0.1/', 'http://[fd00::1]/', 'nonsense']) {
        t.equal(after('address_blocked', 1, { url }), 'exhausted', url);
    }
});

t.test('uses up no try for a fault on this side, unless there is a single one', async (t) => {
    for (const attempt of [1, 9, 10, 1000]) {
        t.equal(after('interrupted', attempt), 'fault', String(attempt));
    }
    t.equal(after('interrupted', 1, { singleAttempt: true }), 'exhausted');
});

t.test('tries again on the schedule after everything else, a blocked name too', async (t) => {
    const special = new Set<OutcomeCode>(['delivered', 'interrupted', 'gone', 'invalid_exporter', 'invalid_message', 'client_error']);
    for (const code of OUTCOME_CODES.filter((code) => !special.has(code))) {
        t.equal(after(code, 9), 86400e3, code);
    }
});
