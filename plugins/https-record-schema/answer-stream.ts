import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';

/** Text on its way to a client that may still be sending its request, and may read nothing before it has sent everything. */
export interface AnswerStream {
    readonly stream: Readable;
    /**
     * Waits while too much is unread, so that a client that reads slowly gets everything. When it reads nothing for a while, text is
     * not sent until it reads again (false): else both sides would wait for each other.
     */
    write(text: string): Promise<boolean>;
    /** Sends last words. */
    end(text: string): Promise<void>;
    /** Sends last words, then breaks the connection: a cut answer must never look complete. */
    fail(text: string, error: Error): Promise<void>;
}

/** What the stream has to know of the connection. */
export interface AnswerStreamOptions {
    /** Aborted when the connection is gone. */
    readonly closed: AbortSignal;
    /** How many bytes wait behind the stream for the client. */
    unsent(): number;
    /** Resolves when the client has sent everything, or is not waited for any longer: then the answer may end. */
    rest(): Promise<void>;
    /** How long a client may read nothing, in milliseconds. 10 s by default. */
    readonly patience?: number;
    /** How many bytes may be unread. 4 MiB by default. */
    readonly maxUnread?: number;
}

const LAST_WORDS_MS = 2_000;
const POLL_MS = 10;

/** A stream for one answer. */
export function answerStream({ closed, unsent, rest, patience = 10_000, maxUnread = 4_194_304 }: AnswerStreamOptions): AnswerStream {
    let room = true;
    let reads = true;
    let makeRoom = (): void => {};
    const stream = new Readable({
        highWaterMark: maxUnread,
        read() {
            room = true;
            reads = true;
            makeRoom();
        },
    });
    // Nobody else hears the error where the client went before the answer began.
    stream.on('error', () => {});

    async function waitForRoom(): Promise<void> {
        const freed = new AbortController();
        makeRoom = () => freed.abort();
        await setTimeout(patience, undefined, { signal: AbortSignal.any([freed.signal, closed]) }).catch(() => {});
        reads = room;
    }

    return {
        stream,

        async write(text) {
            if (!room && reads) {
                await waitForRoom();
            }

            if (!room) {
                return false;
            }

            room = stream.push(text);
            return true;
        },

        async end(text) {
            stream.push(text);
            await rest();
            stream.push(null);
        },

        async fail(text, error) {
            stream.push(text);
            for (let waited = 0; waited < LAST_WORDS_MS && !closed.aborted && stream.readableLength + unsent() > 0; waited += POLL_MS) {
                await setTimeout(POLL_MS);
            }

            await rest();
            stream.destroy(error);
        },
    };
}
