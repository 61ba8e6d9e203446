import { nameResolver, type Resolve } from '../../lib/egress/resolver.ts';
import { codeOfStatus, resultOfError } from '../../lib/webhooks/outcomes/attempt-result.ts';
import { AttemptFailure, type AttemptResult, newProgress, type Outcome, outcomeOf } from '../../lib/webhooks/outcomes/outcome.ts';
import type { Message, Sender } from '../../lib/webhooks/sending/http-sender.ts';
import { ATTEMPT_TIMEOUT, type SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './timeline.ts';
import type { Weather } from './weather.ts';

/** How a receiver behaves. */
export const BEHAVIOURS = [
    'takes',
    'is slow',
    'is silent',
    'refuses connections',
    'takes and resets',
    'fails',
    'is flaky',
    'limits its rate',
    'asks for a pause',
    'knows no such path',
    'is gone',
] as const;

export type Behaviour = (typeof BEHAVIOURS)[number];

/** A message of this title ends the process that sends it. */
export const DEADLY = 'deadly';

/** What a receiver does with a message: the answer comes after so many milliseconds, or none. */
interface Reaction {
    readonly after: number;
    readonly status: number | 'reset' | 'none';
    readonly retryAfter: number | null;
    /** It has the message, whatever is heard of that. */
    readonly takes: boolean;
}

/** Who is told what went over the wire. */
export interface Wire {
    /** The process begins an attempt, before it has looked for the receiver. */
    begun(process: SimulatedProcess, message: Message): void;
    /** Its message reaches the receiver. */
    posted(process: SimulatedProcess, message: Message): void;
    /** The receiver has the message and says so, or would. */
    taken(message: Message): void;
    /** The process hears that its message was taken. */
    heard(message: Message): void;
}

/** The receivers of all exporters, each by the host of its URL. */
export class Receivers {
    readonly behaviours: Map<string, Behaviour> = new Map();
    private readonly timeline: Timeline;
    private readonly weather: Weather;
    private readonly random: () => number;
    private readonly wire: Wire;

    constructor(timeline: Timeline, weather: Weather, random: () => number, wire: Wire) {
        this.timeline = timeline;
        this.weather = weather;
        this.random = random;
        this.wire = wire;
    }

    /** All take what they are sent. */
    heal(): void {
        this.behaviours.clear();
    }

    /** The way of a process to the receivers: resolver and network. */
    senderFor(process: SimulatedProcess): Sender {
        const inFlight = new Set<AbortController>();
        const resolve = nameResolver({ timeout: 5_000, maxPending: 2, lookup: this.lookupOf(process) });
        let closed = false;

        return {
            attemptTimeout: ATTEMPT_TIMEOUT,

            send: async (message) => {
                const startedAt = this.timeline.now;
                this.wire.begun(process, message);
                const deadline = new AbortController();
                inFlight.add(deadline);
                const timer = setTimeout(() => deadline.abort(new AttemptFailure('timeout', 'The attempt took too long')), ATTEMPT_TIMEOUT);
                const sent = closed ? interrupted() : this.attempt(process, message, resolve, deadline.signal);
                const result = await sent.catch((error: unknown) => resultOfError(error));
                clearTimeout(timer);
                inFlight.delete(deadline);
                const outcome: Outcome = outcomeOf(result, newProgress(), this.timeline.now - startedAt);
                this.timeline.note(`outcome ${outcome.code}`);
                return outcome;
            },

            open() {
                closed = false;
            },

            async close({ timeout } = {}) {
                closed = true;
                if (timeout === 0) {
                    for (const deadline of inFlight) {
                        deadline.abort(new AttemptFailure('interrupted', 'The sender was closed'));
                    }
                }
            },
        };
    }

    private lookupOf(process: SimulatedProcess): NonNullable<Parameters<typeof nameResolver>[0]['lookup']> {
        return (hostname, _, callback) => {
            const dies = process.nextCallIsLast();
            this.timeline.note(`resolver.lookup ${hostname}`);
            if (dies) {
                process.kill();
                return;
            }
            const { code, after } = this.lookup();
            const error = code === null ? null : Object.assign(new Error(code), { code });
            this.timeline.after(after, () => callback(error, [{ address: '203.0.113.7' }]), process);
        };
    }

    private lookup(): { readonly code: string | null; readonly after: number } {
        switch (this.weather.ofResolver()) {
            case 'is silent':
                return { code: 'EAI_AGAIN', after: 20_000 };
            case 'is slow':
                return { code: null, after: 7_000 * this.random() };
            case 'knows no name':
                return { code: 'ENOTFOUND', after: 5 };
            default:
                return { code: null, after: 2 * this.random() };
        }
    }

    /** @throws what the sender's errors are, and the signal's reason. */
    private async attempt(process: SimulatedProcess, message: Message, resolve: Resolve, signal: AbortSignal): Promise<AttemptResult> {
        const { hostname } = new URL(message.url);
        await resolve(hostname, signal);
        signal.throwIfAborted();
        const behaviour = this.behaviours.get(hostname) ?? 'takes';
        const dies = process.nextCallIsLast();
        if (dies) {
            process.kill();
        }

        return await new Promise<AttemptResult>((settle, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
            const fail = (code: 'connect_refused' | 'connection_reset', after: number): void => {
                this.timeline.after(after, () => reject(new AttemptFailure(code, 'Simulated')), process);
            };
            if (behaviour === 'refuses connections') {
                fail('connect_refused', 2);
                return;
            }

            const answer = (result: AttemptResult): void => {
                if (result.code === 'delivered' && !signal.aborted) {
                    this.wire.heard(message);
                }
                settle(result);
            };
            // What has been written arrives, also when its process is dead by then.
            if (!dies || this.random() < 0.5) {
                this.timeline.after(2, () => this.arrive(process, message, behaviour, answer, fail), null);
            }
        });
    }

    private arrive(
        process: SimulatedProcess,
        message: Message,
        behaviour: Behaviour,
        answer: (result: AttemptResult) => void,
        fail: (code: 'connection_reset', after: number) => void,
    ): void {
        this.wire.posted(process, message);
        if (titleOf(message) === DEADLY) {
            process.kill();
            return;
        }

        const { after, status, retryAfter, takes } = this.reaction(behaviour);
        if (takes) {
            this.wire.taken(message);
        }
        if (status === 'reset') {
            fail('connection_reset', after);
        } else if (status !== 'none') {
            const result = { code: codeOfStatus(status), status, detail: `Answered ${status}`, retryAfter };
            this.timeline.after(after, () => answer(result), process);
        }
    }

    private reaction(behaviour: Behaviour): Reaction {
        const after = 5 + Math.floor(60 * this.random());
        const refusing = (status: number, retryAfter: number | null = null): Reaction => ({ after, status, retryAfter, takes: false });
        const taking: Reaction = { after, status: 204, retryAfter: null, takes: true };
        switch (behaviour) {
            case 'takes':
                return taking;
            case 'is slow':
                return { ...taking, after: 4_000 + 10_000 * this.random() };
            case 'is silent':
                return { ...taking, status: 'none', takes: this.random() < 0.5 };
            case 'takes and resets':
                return { ...taking, status: 'reset' };
            case 'is flaky':
                return this.random() < 0.5 ? taking : refusing(500);
            case 'limits its rate':
                return this.random() < 0.5 ? taking : refusing(429, this.random() < 0.5 ? 10_000 : null);
            case 'asks for a pause':
                return refusing(503, 20_000);
            case 'knows no such path':
                return refusing(404);
            case 'is gone':
                return refusing(410);
            default:
                return refusing(500);
        }
    }
}

async function interrupted(): Promise<never> {
    throw new AttemptFailure('interrupted', 'The sender is closed');
}

function titleOf({ body }: Message): string {
    const { title, data = { title } } = JSON.parse(Buffer.from(body).toString());
    return data.title;
}
