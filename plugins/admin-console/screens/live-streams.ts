import { PassThrough, type Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { Visit } from './screen.ts';

/** What a part of a page shows. */
export interface View {
    /** Differs where there is something else to see. */
    readonly seen: string;
    readonly template: string;
    readonly data: object;
}

/** A part of a page that is shown as it changes. */
export interface LivePart {
    /** Of the stream, below the base. */
    readonly path: string;
    /** What there is to see; null when it is what was seen. */
    look(visit: Visit, seen: string | null): Promise<View | null>;
}

/** What those see who ask for the same. */
export interface Topic {
    /** The same for all of them, and of nobody who must not see it. */
    readonly key: string;
    /** Whose customers they are, who must not take the streams of all others; null for the operator's own people. */
    readonly owner: string | null;
    /** What there is to see, in HTML; null when it is what was seen. */
    look(seen: string | null): Promise<{ readonly seen: string; readonly html: string } | null>;
}

/** How streams are kept; all times are in milliseconds. */
export interface StreamOptions {
    /** The most streams at once, of all and of one owner. */
    readonly max?: number;
    readonly maxOfOwner?: number;
    /** From a look to the next one, whoever is looked for. */
    readonly every?: number;
    /** After so long in which nothing was sent, a stream says that it is there, if its viewer may still see it. */
    readonly beat?: number;
    /** Rejects when the signal says so. */
    readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<unknown>;
    readonly monotonic?: () => number;
    /** Gets what a look came to that failed; those who looked have their streams ended, and come again. */
    readonly onError: (error: unknown) => void;
}

interface Viewer {
    readonly stream: PassThrough;
    readonly maySee: () => Promise<boolean>;
    heardAt: number;
}

interface Followed extends Topic {
    readonly viewers: Set<Viewer>;
    last: { readonly seen: string; readonly html: string } | null;
}

/** What a viewer may leave unread, in bytes, before the stream ends. */
const MAX_UNREAD = 1024 * 1024;

/**
 * Streams of server-sent events. However many there are, one topic is looked at at a time and the next one a second later, so that viewers
 * cost the store no more than one of them does.
 */
export class LiveStreams {
    readonly #options: Required<StreamOptions>;
    readonly #topics = new Map<string, Followed>();
    #ending = new AbortController();
    #isRunning = false;

    constructor(options: StreamOptions) {
        this.#options = {
            max: 100,
            maxOfOwner: 10,
            every: 1_000,
            beat: 10_000,
            sleep: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal, ref: false }),
            monotonic: () => performance.now(),
            ...options,
        };
    }

    /**
     * A stream of what there is to see of the topic.
     *
     * @param maySee Asked before anything is sent; where it does not say true, the stream ends.
     * @returns Null where there are too many, or they were ended.
     */
    open(topic: Topic, maySee: () => Promise<boolean>): Readable | null {
        if (this.#isFull(topic) || this.#ending.signal.aborted) {
            return null;
        }

        const followed = this.#topics.get(topic.key) ?? { ...topic, viewers: new Set(), last: null };
        this.#topics.set(topic.key, followed);
        const viewer: Viewer = { stream: new PassThrough(), maySee, heardAt: this.#options.monotonic() };
        followed.viewers.add(viewer);
        viewer.stream.once('close', () => this.#leave(followed, viewer));
        viewer.stream.write(`retry: 3000\n\n${followed.last === null ? '' : shownEvent(followed.last.html)}`);
        if (!this.#isRunning) {
            this.#isRunning = true;
            void this.#run().finally(() => {
                this.#isRunning = false;
            });
        }
        return viewer.stream;
    }

    #isFull({ owner }: Topic): boolean {
        const { max, maxOfOwner } = this.#options;
        const topics = [...this.#topics.values()];
        const viewersOf = (some: readonly Followed[]): number => some.reduce((sum, { viewers }) => sum + viewers.size, 0);
        const own = topics.filter((topic) => topic.owner === owner);
        return viewersOf(topics) >= max || (owner !== null && viewersOf(own) >= maxOfOwner);
    }

    /** Opens streams again. */
    begin(): void {
        this.#ending = new AbortController();
    }

    /** Ends all streams; none is opened until it begins again. */
    end(): void {
        this.#ending.abort();
        for (const { viewers } of this.#topics.values()) {
            for (const { stream } of viewers) {
                stream.end();
            }
        }
        this.#topics.clear();
    }

    #leave(topic: Followed, viewer: Viewer): void {
        topic.viewers.delete(viewer);
        if (topic.viewers.size === 0 && this.#topics.get(topic.key) === topic) {
            this.#topics.delete(topic.key);
        }
    }

    async #run(): Promise<void> {
        const { every, sleep } = this.#options;
        for (let topic = this.#next(); topic !== null; topic = this.#next()) {
            await this.#look(topic);
            await this.#beat();
            try {
                await sleep(every, this.#ending.signal);
            } catch {
                // All streams have ended.
                return;
            }
        }
    }

    /** The one that has waited longest. */
    #next(): Followed | null {
        const [topic = null] = this.#topics.values();
        if (topic !== null) {
            this.#topics.delete(topic.key);
            this.#topics.set(topic.key, topic);
        }
        return topic;
    }

    async #look(topic: Followed): Promise<void> {
        try {
            const view = await topic.look(topic.last?.seen ?? null);
            if (view !== null) {
                topic.last = view;
                await this.#send([...topic.viewers], shownEvent(view.html));
            }
        } catch (error) {
            this.#options.onError(error);
            for (const { stream } of topic.viewers) {
                stream.end();
            }
        }
    }

    /** Those who have heard nothing for long. */
    async #beat(): Promise<void> {
        const { monotonic, beat } = this.#options;
        const now = monotonic();
        const all = [...this.#topics.values()].flatMap(({ viewers }) => [...viewers]);
        await this.#send(
            all.filter(({ heardAt }) => now - heardAt >= beat),
            ':\n\n',
        );
    }

    async #send(viewers: readonly Viewer[], text: string): Promise<void> {
        await Promise.all(
            viewers.map(async (viewer) => {
                const { stream, maySee } = viewer;
                const goesOn = stream.readableLength + stream.writableLength <= MAX_UNREAD && (await maySee());
                if (!goesOn) {
                    stream.end();
                } else if (stream.writable) {
                    viewer.heardAt = this.#options.monotonic();
                    stream.write(text);
                }
            }),
        );
    }
}

function shownEvent(html: string): string {
    return `event: shown\n${html
        .split(/\r\n|\r|\n/)
        .map((line) => `data: ${line}\n`)
        .join('')}\n`;
}
