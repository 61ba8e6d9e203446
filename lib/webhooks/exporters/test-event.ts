import { eventBody } from '../events/event-body.ts';
import { testEvent } from '../events/event-kinds.ts';
import { formatInput } from '../events/event-routing.ts';
import { messageMaker } from '../messages/formatted-message.ts';
import { type AttemptProgress, newProgress, type Timings, timingsOf } from '../outcomes/outcome.ts';
import { type AnsweredAttempt, answeredAttempts } from '../outcomes/response-bodies.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { StoredExporter } from './exporter.ts';

/** What a `test` event came to. */
export interface TestResult {
    readonly deliveryId: string;
    /**
     * Null when there was no outcome in time: it was not waited for, or only for a moment, as by `stop`; no worker of its collector took it;
     * or this process is being stopped.
     */
    readonly attempt: AnsweredAttempt | null;
}

/** What a `test` of this exporter says. */
export function testBody({ id, name }: Pick<StoredExporter, 'id' | 'name'>, timestamp: Date): object {
    return { timestamp, webhook_id: id, webhook_name: name };
}

/** What becomes of the `test` that a change sends. */
export interface TestOptions {
    /** Whether its outcome is waited for. True by default. */
    readonly wait?: boolean | undefined;
}

/** Milliseconds between two reads of the attempt of a `test`: this part of the time that it has taken so far. */
const TEST_POLL = { part: 0.25, min: 25, max: 500 };

/** Accepts a `test` event for the exporter alone and polls the rows: the attempt may be made by another process on another machine. */
export async function sendTest(exporter: StoredExporter, timeout: number, context: WebhooksContext): Promise<TestResult> {
    const { deliveries, newId, sleep, monotonic, dispatcher } = context;
    const timestamp = await deliveries.now();
    const body = eventBody(testEvent, testBody(exporter, timestamp));
    const event = { id: newId(), kind: testEvent.name, body };
    const message = messageMaker(exporter, context)(formatInput({ ...event, kind: testEvent }, timestamp));
    const [accepted] = await deliveries.accept([{ event, recipients: { exporterId: exporter.id, message } }]);
    const deliveryId = accepted?.deliveries[0] as string;
    dispatcher.wake();

    const since = monotonic();
    let waited = 0;
    while (waited < timeout) {
        const [attempt] = await deliveries.attempts(deliveryId);
        if (attempt?.finishedAt != null) {
            const [answered] = await answeredAttempts(deliveries, deliveryId);
            return { deliveryId, attempt: answered ?? null };
        }

        const pause = Math.min(Math.max(Math.ceil(waited * TEST_POLL.part), TEST_POLL.min), TEST_POLL.max, Math.ceil(timeout - waited));
        await sleep(pause);
        // The reads take time, too. A pause counts in full also by a clock that does not go with `sleep`.
        waited = Math.max(waited + pause, monotonic() - since);
    }

    return { deliveryId, attempt: null };
}

/**
 * The tests that this process is sending, so that somebody can watch how far they are. Only tests are kept here, for as long as they take. Of
 * other deliveries, and of tests that another process sends, nothing can be seen before the outcome is in the store.
 */
export interface TestsUnderWay {
    /** What the attempt of a test writes its progress into. */
    begin(deliveryId: string): AttemptProgress;
    /** Called once the outcome of the test is recorded. */
    end(deliveryId: string): void;
    /** The times of the phases that are over, and of the whole test so far; null for a delivery that is no test of this process. */
    timings(deliveryId: string): Timings | null;
}

interface UnderWay {
    readonly begunAt: number;
    readonly progress: AttemptProgress;
}

/** @param monotonic Milliseconds that only go forward. */
export function testsUnderWay({ monotonic }: { readonly monotonic: () => number }): TestsUnderWay {
    const all = new Map<string, UnderWay>();
    return {
        begin(deliveryId) {
            const progress = newProgress();
            all.set(deliveryId, { begunAt: monotonic(), progress });
            return progress;
        },

        end(deliveryId) {
            all.delete(deliveryId);
        },

        timings(deliveryId) {
            const found = all.get(deliveryId);
            return found === undefined ? null : timingsOf(found.progress, monotonic() - found.begunAt);
        },
    };
}
