import t from 'tap';
import { newProgress, type OutcomeCode, outcomeOf } from '../../lib/webhooks/outcomes/outcome.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/** How a receiver may answer a test. */
const ANSWERS: readonly (readonly [code: OutcomeCode, status: number | null])[] = [
    ['gone', 410],
    ['rate_limited', 429],
    ['server_error', 503],
    ['connect_refused', null],
];

t.test('no answer to a test stops, pauses or blames its exporter', async (t) => {
    const deployment = simulatedDeployment(t);
    let [code, status] = ANSWERS[0] as (typeof ANSWERS)[number];
    const sender = {
        attemptTimeout: 15_000,
        send: async () => outcomeOf({ code, status, detail: '', retryAfter: 60_000 }, newProgress(), 50),
        close: async () => undefined,
    };
    const process = await deployment.start('only', { sender, breakerAfter: 1, stopAfter: 30 * 60_000 });
    const id = await deployment.exporter(process);
    for ([code, status] of ANSWERS) {
        t.match((await deployment.finish(process.exporters.test(id))).attempt?.outcome, { code });
        t.match(await process.exporters.get(id), { state: 'running', stopReason: null, consecutiveFailures: 0 }, code);
        t.match((await process.exporters.show(id)).health, { breaker: 'closed', failingSince: null, pausedUntil: null, lastOutcome: null });
    }
});
