import { ScanwireError } from '../../errors.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import { type FormattedMessage, isUnmade, lacking, madeAfterwards, type UnmadeMessage } from '../messages/formatted-message.ts';
import { resultOfError } from '../outcomes/attempt-result.ts';
import { AttemptFailure, INTERRUPTIONS, type Outcome, unsentOutcome } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** The messages of events that were accepted by processes without the formats of their exporters: they are made when they are sent. */
export interface LateMessages {
    /** The outcome of an attempt, with the message that is made now if it has none yet. @param attempt Makes the attempt; it does not reject. */
    attempted(claim: Claim, attempt: (claim: Claim) => Promise<Outcome>): Promise<Outcome>;
}

type Context = Pick<WebhooksContext, 'deliveries' | 'formats' | 'vendor' | 'maxBodyBytes' | 'onError'>;

/** The late messages of a process. */
export function lateMessages(context: Context): LateMessages {
    return {
        async attempted(claim, attempt) {
            const { message, exporter } = claim;
            if (!isUnmade(message, exporter)) {
                return await attempt(claim);
            }

            let made: FormattedMessage;
            try {
                made = await lateMessage({ ...claim, message }, context);
            } catch (error) {
                return unsentOutcome(resultOfError(error));
            }
            return await attempt({ ...claim, message: made });
        },
    };
}

/** @throws ScanwireError `MISCONFIGURED` where this process does not have the format, or is not shown the event. */
async function lateMessage(claim: Claim & { readonly message: UnmadeMessage }, context: Context): Promise<FormattedMessage> {
    const { deliveryId, exporter, message: unmade } = claim;
    // The body of the event is not loaded for nothing.
    const content = context.formats.has(exporter.format) ? await context.deliveries.content?.(deliveryId) : undefined;
    if (!content) {
        throw lacking(exporter);
    }
    if (content.event.erasedAt !== null) {
        throw erased();
    }

    const made = madeAfterwards(content.event, exporter, context);
    // What cannot be made is not kept: nothing was sent of it, and a mended format may make it for a replay.
    return made.failure === null ? await kept(deliveryId, made, unmade.failure, context) : made;
}

/** Keeps the message before it is sent, so that every further try sends the same, and people see what was sent. */
async function kept(
    deliveryId: string,
    made: FormattedMessage,
    failure: string,
    { deliveries: { messages }, onError }: Context,
): Promise<FormattedMessage> {
    if (messages === undefined) {
        return made;
    }

    let stored: FormattedMessage | null;
    try {
        stored = await messages.keep(deliveryId, made, failure);
    } catch (cause) {
        onError(cause as Error);
        throw new ScanwireError('UNAVAILABLE', `The message could not be kept: ${resultOfError(cause).detail}`, { cause });
    }
    if (stored === null) {
        throw erased();
    }
    return stored;
}

function erased(): AttemptFailure {
    return new AttemptFailure('interrupted', INTERRUPTIONS.erased);
}
