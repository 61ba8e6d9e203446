/** How many answers without an end known before are sent at once, by all plugins that read one source. */
import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import Joi from 'joi';
import { ReaderWatch } from '../lib/protect/reader-watch.ts';
import { sourceOf } from '../lib/store-source.ts';
import { retryLater } from './errors.ts';

/** Each holds some MiB, and together they take what one takes of the database and of this process. */
export const MAX_STREAMS = 32;

/** Rule of the option `maxStreams`. */
export const maxStreamsSchema: Joi.NumberSchema = Joi.number().integer().min(1).default(MAX_STREAMS);

/** How long a client may take nothing of an index that waits for it, and how often that is looked at, in milliseconds. */
const [PATIENCE, LOOK] = [30_000, 5_000];
/** How long a client is told to wait for a place, in milliseconds. */
const RETRY_AFTER = 5_000;

/** How streams are told apart. */
export interface StreamsOptions {
    /** Milliseconds since any moment. */
    readonly now?: () => number;
    /** What is read, for who gets no place; `indexes` by default. */
    readonly what?: string;
}

/** The indexes that are being sent. */
export interface Streams {
    /**
     * Takes a place until the answer is sent or its connection gone. A client that takes nothing of it for 30 s loses the connection.
     *
     * @throws Boom 503 with `Retry-After` while all places are taken.
     */
    begin(request: Request): void;
    /** Takes no place, as is right for a page, which has an end; whoever takes nothing of it loses the connection all the same. */
    watch(request: Request): void;
    /** Looks for clients that take nothing, as it does by itself every 5 s. */
    look(): void;
}

interface Stream {
    readonly request: Request;
    readonly taking: ReaderWatch;
    readonly hasPlace: boolean;
}

/** The indexes that are being read from one source, whole or as pages, and what looks after them. */
interface Reading {
    // No Map: one that requests go into and out of all the time is made anew every few of them, and V8 lets each that it was hold on to the next
    // and to its requests, so that none of them goes before all of the heap is looked at.
    readonly open: Stream[];
    /** How many of them have a place. */
    places: number;
    timer: NodeJS.Timeout | undefined;
}

const readings = new WeakMap<object, Reading>();

/**
 * The indexes that are read from a store, or from another one over the same pool, counted together whatever plugin or server sends them.
 *
 * @param max How many there may be for another one to begin here.
 */
export function streamsOf(store: object, max: number, { now = () => performance.now(), what = 'indexes' }: StreamsOptions = {}): Streams {
    const source = sourceOf(store);
    const reading = readings.get(source) ?? { open: [], places: 0, timer: undefined };
    readings.set(source, reading);
    const { open } = reading;

    function look(): void {
        for (const { request, taking } of open) {
            if (taking.pausedFor(now()) >= PATIENCE) {
                request.raw.res.destroy();
            }
        }
    }

    function enter(request: Request, hasPlace: boolean): void {
        const { req, res } = request.raw;
        if (res.closed) {
            return;
        }

        const stream = { request, taking: new ReaderWatch(req.socket, now()), hasPlace };
        open.push(stream);
        reading.places += Number(hasPlace);
        reading.timer ??= setInterval(look, LOOK).unref();
        const end = (): void => leave(reading, stream);
        res.once('close', end);
        // Where there is no connection, as with `server.inject`, nothing is closed.
        res.once('finish', end);
    }

    return {
        look,

        begin(request) {
            if (reading.places >= max) {
                throw retryLater(Boom.serverUnavailable(`Too many ${what} are being read; try again later`), RETRY_AFTER);
            }
            enter(request, true);
        },

        watch: (request) => enter(request, false),
    };
}

function leave(reading: Reading, stream: Stream): void {
    const index = reading.open.indexOf(stream);
    if (index >= 0) {
        reading.open.splice(index, 1);
        reading.places -= Number(stream.hasPlace);
    }
    if (reading.open.length === 0) {
        clearInterval(reading.timer);
        reading.timer = undefined;
    }
}
