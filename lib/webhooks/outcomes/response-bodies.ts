import { batched } from '../../batched.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import { printableLines } from '../../printable.ts';
import { within } from '../../within.ts';
import type { Attempt, Claim, DeliveryStore } from '../deliveries/delivery-store.ts';
import type { RefusedResponse } from '../sending/http-exchange.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { masked } from './masking.ts';
import { messageSecrets } from './message-secrets.ts';

/** The beginning of the body of an answer that was no 2xx, for people. */
export interface ResponseBody {
    /**
     * At most 1,024 bytes of UTF-8, with `***` in place of secrets of the message that the receiver repeats. The rest is text from outside, as
     * the receiver wrote it, with `�` in place of control and direction characters. Null for a body that is no text, or that is compressed.
     */
    readonly text: string | null;
    /** How many bytes were read of it. */
    readonly bytes: number;
    /** Whether the body is longer than what was kept. */
    readonly truncated: boolean;
}

/** A body that is kept for an attempt. */
export interface AttemptResponse {
    readonly deliveryId: string;
    /** Token of the claim under which the attempt was made. */
    readonly token: string;
    readonly body: ResponseBody;
}

/** Keeps what receivers answered, for as long as the attempts are kept, but no longer than the bodies of their events. */
export interface ResponseStore {
    /**
     * Keeps responses in one statement, before the outcomes of their attempts are recorded. Nothing is kept for a delivery that does not exist,
     * or for an event whose body was erased. The first response of an attempt stays.
     */
    keep(responses: readonly AttemptResponse[]): Promise<void>;
    /** Those of a delivery, by the numbers of its attempts. */
    of(deliveryId: string): Promise<ReadonlyMap<number, ResponseBody>>;
}

/** What this process keeps of responses. */
export interface Responses {
    /** Whether responses are kept. If not, nobody needs to report any. */
    readonly kept: boolean;
    /** Keeps the part of a response that may be shown. Never rejects, and waits only a moment, so that no outcome is lost or late because of it. */
    keep(claim: Claim, refused: RefusedResponse, keyRing: KeyRing): Promise<void>;
}

/** Milliseconds that an outcome waits for its response to be kept. */
const PATIENCE = 500;

/** Maximum number of responses that share one statement. */
const BATCH = 100;

/** The responses of a process. Where the deployment keeps none, or the store cannot, they cost nothing. */
export function responsesOf({
    deliveries: { responses },
    keepResponses,
    vendor,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'keepResponses' | 'vendor' | 'onError'>): Responses {
    if (responses === undefined || !keepResponses) {
        return { kept: false, keep: async () => {} };
    }

    const keepBatched = batched<AttemptResponse, undefined>(async (several) => {
        await responses.keep(several);
        return several.map(() => undefined);
    }, BATCH);

    async function keep({ deliveryId, token, ...claim }: Claim, refused: RefusedResponse, keyRing: KeyRing): Promise<void> {
        const body = responseBody(refused, messageSecrets(claim, refused.sent, { keyRing, vendor }));
        if (body !== null) {
            await within(keepBatched({ deliveryId, token, body }), { timeout: PATIENCE });
        }
    }

    return { kept: true, keep: (...given) => keep(...given).catch(onError) };
}

/** An attempt, and what the receiver answered to it. */
export interface AnsweredAttempt extends Attempt {
    /** Null where there is none: the attempt succeeded, the receiver sent no body, or bodies are not kept. */
    readonly responseBody: ResponseBody | null;
}

/** Attempts of a delivery, first to last, with what receivers answered where the store keeps it. */
export async function answeredAttempts(store: DeliveryStore, deliveryId: string): Promise<readonly AnsweredAttempt[]> {
    const [attempts, bodies] = await Promise.all([store.attempts(deliveryId), store.responses?.of(deliveryId)]);
    return attempts.map((attempt) => ({ ...attempt, responseBody: bodies?.get(attempt.number) ?? null }));
}

const MAX_TEXT_BYTES = 1024;

/** What may be shown of a body; null for an empty one. */
export function responseBody({ body, bytes, encoded, cut }: RefusedResponse, secrets: readonly string[]): ResponseBody | null {
    if (bytes === 0) {
        return null;
    }

    const decoded = encoded ? null : textOf(body);
    if (decoded === null) {
        return { text: null, bytes, truncated: cut };
    }
    // Secrets are masked first, in all that was read, since the end of the shown text may be in the middle of one.
    const text = printableLines(masked(decoded, secrets, { cut }).replaceAll('\r\n', '\n').replaceAll('\t', '    '));
    const shown = beginning(text);
    return { text: shown, bytes, truncated: cut || shown.length < text.length };
}

/** The share of unreadable characters above which a body is no text. */
const MAX_UNREADABLE = 0.1;

/** The body as text; null when it is none. A character that was cut through at the end is left out. */
function textOf(body: Uint8Array): string | null {
    const text = new TextDecoder().decode(body, { stream: true });
    const unreadable = text.match(/(?![\t\r\n])[\p{Cc}\ufffd]/gu)?.length ?? 0;
    return unreadable > MAX_UNREADABLE * text.length ? null : text;
}

/** The beginning of a text, without cutting a character in two. */
function beginning(text: string): string {
    const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_TEXT_BYTES));
    return text.slice(0, read);
}
