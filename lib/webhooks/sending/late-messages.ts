import { ScanwireError } from '../../errors.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import { restAfter } from '../events/event-body.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import {
    type FormattedMessage,
    isUnmade,
    lacking,
    madeAfterwards,
    type UnmadeMessage,
    UnmakeableMessage,
} from '../messages/formatted-message.ts';
import { resultOfError } from '../outcomes/attempt-result.ts';
import { AttemptFailure, INTERRUPTIONS, type Outcome, unsentOutcome } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** The messages of events that were accepted by processes without the formats of their exporters: they are made when they are sent. */
export interface LateMessages {
    /** The outcome of an attempt, with the message that is made now if it has none yet. @param attempt Makes the attempt. */
    attempted(claim: Claim, attempt: (claim: Claim) => Promise<Outcome>): Promise<Outcome>;
}

type Context = Pick<
    WebhooksContext,
    'deliveries' | 'formats' | 'vendor' | 'maxBodyBytes' | 'bodyMemory' | 'sleep' | 'onError' | 'onWarning'
>;

/**
 * Milliseconds from the acceptance of an event for which a delivery waits for a process that has the format. An application may have dropped the format, or
 * given it another name: then nobody makes the message, and the delivery would be tried without end.
 */
const WAITS_FOR_FORMAT = 24 * 60 * 60_000;

/**
 * Its attempts at least. A delivery may have waited so long for something else, as for its exporter, which was paused; and this process may be one of several,
 * of which others have the format.
 */
const MIN_ATTEMPTS = 10;

/** The late messages of a process. */
export function lateMessages(context: Context): LateMessages {
    const warn = warningOnce(context);
    return {
        attempted(claim, attempt) {
            const { message, exporter } = claim;
            return isUnmade(message, exporter) ? attemptedLate({ ...claim, message }, attempt, { ...context, warn }) : attempt(claim);
        },
    };
}

async function attemptedLate(
    claim: Claim & { readonly message: UnmadeMessage },
    attempt: (claim: Claim) => Promise<Outcome>,
    context: Context & { readonly warn: Warn },
): Promise<Outcome> {
    const hold = holding(claim.exporter, context);
    try {
        const made = await lateMessage(claim, { ...context, hold }).catch((error: unknown) => unsentOutcome(resultOfError(error)));
        return 'code' in made ? made : await attempt({ ...claim, message: made });
    } finally {
        hold();
    }
}

/** Counts the bytes of these texts, in place of those before, on the account of an exporter. That of the claim has none: it was read without a body. */
type Hold = (...texts: readonly string[]) => void;

function holding({ id }: StoredExporter, { bodyMemory }: Context): Hold {
    let held = 0;
    return (...texts) => {
        const before = held;
        held = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
        bodyMemory.take(id, held);
        bodyMemory.giveBack(id, before);
    };
}

type Warn = (exporter: StoredExporter) => void;

/** Warns of each exporter whose format this process does not have, once while it has that. */
function warningOnce({ formats, onWarning }: Context): Warn {
    const warned = new Map<string, string>();
    return ({ id, format }) => {
        if (!formats.has(format) && warned.get(id) !== format) {
            warned.set(id, format);
            onWarning(
                `Exporter ${id} has the format ${format}, which this process does not have: what was accepted without it waits for a process that has it, for a day`,
            );
        }
    };
}

/**
 * @throws ScanwireError `MISCONFIGURED` where this process does not have the format, or is not shown the event; UnmakeableMessage where that has gone on
 *     for too long.
 */
async function lateMessage(
    claim: Claim & { readonly message: UnmadeMessage },
    { hold, warn, ...context }: Context & { readonly hold: Hold; readonly warn: Warn },
): Promise<FormattedMessage> {
    const { deliveryId, exporter, event, message: unmade } = claim;
    warn(exporter);
    const hasFormat = context.formats.has(exporter.format);
    const isLast = claim.attempt >= MIN_ATTEMPTS && claim.claimedAt.getTime() - event.createdAt.getTime() >= WAITS_FOR_FORMAT;
    // The body of the event is not loaded for nothing.
    const content = hasFormat || isLast ? await context.deliveries.content?.(deliveryId) : undefined;
    if (content && content.event.erasedAt !== null) {
        throw erased();
    }
    if (content?.message && !isUnmade(content.message, exporter)) {
        // Another process has made it since this one has read it.
        hold(content.message.body);
        return content.message;
    }
    if (!(content && hasFormat)) {
        throw isLast ? nobodyHas(exporter) : lacking(exporter);
    }

    const { body } = content.event;
    hold(body);
    await rest(body, context);
    const made = madeAfterwards(content.event, exporter, context);
    hold(body, made.body);
    // What cannot be made is not kept: nothing was sent of it, and a mended format may make it for a replay.
    const message = made.failure === null ? await kept(deliveryId, made, unmade.failure, context) : made;
    hold(message.body);
    await rest(message.body, context);
    return message;
}

async function rest(text: string, { sleep }: Context): Promise<void> {
    const milliseconds = restAfter(text);
    if (milliseconds > 0) {
        await sleep(milliseconds);
    }
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
        if (cause instanceof ScanwireError && cause.code === 'INVALID_INPUT') {
            throw new UnmakeableMessage(`The message cannot be stored: ${cause.message}`, 'format');
        }
        onError(cause as Error);
        throw new ScanwireError('UNAVAILABLE', `The message could not be kept: ${resultOfError(cause).detail}`, { cause });
    }
    if (stored === null) {
        throw erased();
    }
    return stored;
}

function nobodyHas({ format }: StoredExporter): UnmakeableMessage {
    return new UnmakeableMessage(`Format ${format}: no process that was to send this has the format`, 'format');
}

function erased(): AttemptFailure {
    return new AttemptFailure('interrupted', INTERRUPTIONS.erased);
}
