import { mock } from 'node:test';
import t, { type Test } from 'tap';
import type { Claim, RecordedOutcome } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { outcomeRecorder } from '../../../../lib/webhooks/sending/outcome-recorder.ts';

/** A recorder whose statements end when they are told to, and the deliveries of each. Time stands still. */
function recording(t: Test) {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const statements: (readonly string[])[] = [];
    let end = (): void => undefined;
    type Context = Parameters<typeof outcomeRecorder>[0];
    const recorder = outcomeRecorder({
        deliveries: {
            async recordOutcomes(outcomes: readonly RecordedOutcome[]) {
                statements.push(outcomes.map(({ deliveryId }) => deliveryId));
                await new Promise<void>((resolve) => {
                    end = resolve;
                });
                return outcomes.map(() => true);
            },
        } as Partial<Context['deliveries']> as Context['deliveries'],
        breakerRules: {} as Context['breakerRules'],
        session: { offers: () => true } as Partial<Context['session']> as Context['session'],
        sleep: async () => undefined,
        onError: (error) => t.fail(error.message),
    });
    return {
        statements,
        async record(ids: readonly string[], outcome: Partial<RecordedOutcome>, claim: Partial<Claim> = {}) {
            for (const deliveryId of ids) {
                const whole = { pause: null, stopReason: null, ...outcome, deliveryId } as RecordedOutcome;
                void recorder.record(whole, { attempt: 2, singleAttempt: false, exporter: { ordered: false }, ...claim } as Claim);
            }
            await settled();
        },
        async end() {
            end();
            await settled();
        },
    };
}

async function settled(): Promise<void> {
    await new Promise(setImmediate);
    await new Promise(setImmediate);
}

function names(what: string, count: number): readonly string[] {
    return Array.from({ length: count }, (_, index) => `${what} ${index}`);
}

const after = (total: number) => ({ outcome: { timings: { total } } }) as Pick<RecordedOutcome, 'outcome'>;
const FAILURE = { ...after(5_000), next: { state: 'exhausted' }, health: 'failure' } as const;
const SLOW_SUCCESS = { ...after(900), next: { state: 'delivered' }, health: 'success' } as const;

t.test('records at once what pauses or stops an exporter, and with others what does neither', async (t) => {
    const { statements, record, end } = recording(t);
    await record(['failed'], FAILURE);
    t.strictSame(statements, []);
    await record(['paused'], { ...FAILURE, health: 'none', pause: 5_000 });
    t.strictSame(statements, [['paused', 'failed']]);
    await end();
    await record(['stopped'], { ...FAILURE, stopReason: 'The receiver answered 410 Gone' });
    t.strictSame(statements.slice(1), [['stopped']]);
});

t.test('records first what may not wait', async (t) => {
    const { statements, record, end } = recording(t);
    await record(names('waits', 40), FAILURE);
    await record(['test'], FAILURE, { singleAttempt: true });
    t.equal(statements.length, 1);
    await end();
    t.equal(statements[1]?.[0], 'test');
});

t.test('lets many slow successes share a statement, and few failures, in turn', async (t) => {
    const { statements, record, end } = recording(t);
    await record(['first'], FAILURE, { singleAttempt: true });
    await record(names('slow', 70), SLOW_SUCCESS);
    await record(names('failed', 70), FAILURE);
    for (let count = 0; count < 3; count += 1) {
        await end();
    }
    t.strictSame(
        statements.map((ids) => [ids[0], ids.length]),
        [
            ['first', 1],
            ['slow 0', 70],
            ['failed 0', 16],
            ['failed 16', 16],
        ],
    );
});
