import type { Test } from 'tap';
import type { Message } from './processes.ts';

/** What arrived twice is the same message: the same body and signature, and the same message id where one is sent. */
export function assertSameDuplicates(t: Test, messages: readonly Message[]): void {
    const first = new Map<string, Message>();
    let duplicates = 0;
    for (const message of messages) {
        if (message.headers['x-vendor-event'] === 'test') {
            continue;
        }

        const { investigationId } = JSON.parse(Buffer.from(message.body, 'base64').toString());
        const known = first.get(investigationId);
        if (known === undefined) {
            first.set(investigationId, message);
            continue;
        }

        duplicates += 1;
        if (message.body !== known.body || identity(message) !== identity(known)) {
            t.fail(`investigation ${investigationId} came twice, and not the same`);
        }
    }

    t.comment(`${duplicates} duplicates among ${messages.length} messages`);
}

function identity({ headers }: Message): string {
    return `${headers['x-vendor-signature']} ${headers['webhook-id']}`;
}
