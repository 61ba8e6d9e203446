import { randomBytes } from 'node:crypto';
import type { Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { type KeyRing, keyRing } from '../../lib/keys/key-ring.ts';
import type { WebhookStores, WebhooksOptions } from '../../lib/webhooks/options.ts';
import { newProgress, type Outcome, outcomeOf } from '../../lib/webhooks/outcomes/outcome.ts';
import type { Message, Sender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';

/** A process of the exporter that reaches no network: what it would have sent, waited for and reported. */
export interface RecordingProcess extends Webhooks {
    readonly sent: Message[];
    readonly waits: number[];
    readonly errors: Error[];
}

/** The key ring of processes that are given none. */
export const ring: KeyRing = keyRing({ current: 'k', keys: { k: randomBytes(32) } });

/** What a receiver says that took a message. */
export const taken: Outcome = outcomeOf({ code: 'delivered', status: 204, detail: 'Answered 204', retryAfter: null }, newProgress(), 1);

/**
 * A process over the stores, closed at the end of the test.
 *
 * @param answer What becomes of a message; delivered when absent.
 */
export function recordingProcess(
    t: Test,
    stores: WebhookStores,
    options: Partial<WebhooksOptions> = {},
    answer: () => Promise<Outcome> = async () => taken,
): RecordingProcess {
    const [sent, waits, errors]: [Message[], number[], Error[]] = [[], [], []];
    const sender: Sender = {
        attemptTimeout: 1000,
        async send(message) {
            sent.push(message);
            return await answer();
        },
        close: async () => {},
    };
    const { queue = memoryQueue(), ...more } = options;
    const made = webhooks({
        ...stores,
        queue,
        keyRing: ring,
        guard: egressGuard({ allow: [] }),
        sender,
        async sleep(milliseconds) {
            waits.push(milliseconds);
        },
        onError: (error) => errors.push(error),
        ...more,
    });
    t.teardown(async () => {
        await made.close();
        await queue.close();
    });
    return { ...made, sent, waits, errors };
}
