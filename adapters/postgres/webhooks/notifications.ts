import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { type Ticker, timer } from '../../../lib/clock.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { DeliveryStore } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { RETRIES } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Listening } from '../../../lib/webhooks/dispatching/outlook.ts';
import { type Patience, type PoolLike, patiently, withClient } from '../database.ts';
import { storeError } from '../database-errors.ts';
import { type HostPool, isHostPool, ownPool } from '../own-pool.ts';
import { type SharedConnection, shared } from './shared-connection.ts';

/** How commits of the application's transactions are heard. */
export interface Notifications {
    /** Makes the commit of `tx` heard, once however often this is called in the transaction. Where there are very many commits, not each of them is heard. */
    notify(tx: Executor): Promise<void>;
    /** Absent for a pool from which no second pool can be made. */
    readonly listen?: NonNullable<DeliveryStore['listen']>;
    /**
     * Sends statements that may be sent twice by the connection that listens, if that is free and answers, and else by `db`. Applications may have taken all
     * connections of their pool, and a process that cannot say that it is alive loses what it is sending to others.
     */
    beside(db: Executor): Executor;
}

/** How a connection that listens is watched. */
export interface Watch extends Omit<Patience, 'onServer' | 'probe'> {
    /** Milliseconds between two statements that show whether it still answers. 10,000 by default. */
    readonly probeEvery?: number;
    /** Milliseconds until a lost one is replaced at first, and at most. */
    readonly retries?: typeof RETRIES;
    /** Milliseconds that only go forward. */
    readonly monotonic?: () => number;
    readonly ticker?: Ticker;
}

/**
 * A connection that does not answer is noticed within the sum of the probe's interval and its time limit, with 10 s to spare before half a minute
 * is over.
 */
const WATCH = { connect: 4_000, statement: 10_000, probeEvery: 10_000, retries: RETRIES } as const;

/**
 * The channel for commits of processes that publish but do not listen. A process that listens notifies a channel of its own, so that it alone
 * looks for what it has published, and eight processes cost no more than one.
 */
const COMMON = 'scanwire';

/** What a process notifies itself of, to hear whether it is heard: nothing was published. */
const PROOF = 'proof';

/** The lock that the one session holds which listens to the common channel. When that session ends, another one takes the lock over at its next probe. */
const TAKE_COMMON = "select case when $1 then true else pg_try_advisory_lock(hashtextextended('scanwire.notifications', 0)) end as common";

/**
 * On a PostgreSQL server, all transactions that notify commit one after the other. So a process that listens, and publishes in more than
 * `aSecond` transactions a second, does not notify: it looks for due rows by itself every `lookEvery` milliseconds, for as long as such a
 * transaction may take to commit. What takes longer is found by polling.
 */
const MANY = { aSecond: 100, lookEvery: 10, lookFor: 1_000 } as const;

/**
 * Uses the notifications of PostgreSQL, which delivers them at the commit and drops them at a rollback. Several notifications of one transaction
 * arrive as one.
 */
export function notifications(pool: PoolLike, watch: Watch = {}): Notifications {
    const channels: Channels = new Map();
    const many = lookingWhereMany(channels, watch);
    return {
        async notify(tx) {
            const [channel] = channels.keys();
            if (channel === undefined || !many()) {
                await tx.query('select pg_notify($1, $2)', [channel ?? COMMON, '']);
            }
        },
        beside: (db) => besideListening(channels, db),
        ...(isHostPool(pool) && {
            listen: (heard, onError) => listening({ pool, watch: { ...WATCH, ...watch }, channels, heard, onError }),
        }),
    };
}

/** The connections of this process that listen, by the channel that each has for itself. */
type Channels = Map<string, ListeningConnection>;

interface ListeningConnection {
    readonly heard: () => void;
    readonly beside: SharedConnection['beside'];
}

function besideListening(channels: Channels, db: Executor): Executor {
    return {
        async query<Row>(text: string, values?: unknown[]) {
            const [connection] = channels.values();
            return (await connection?.beside<Row>(text, values)) ?? (await db.query<Row>(text, values));
        },
    };
}

/** Tells, each time that something is published, whether this happens too often to notify. If so, it begins to look for due rows. */
function lookingWhereMany(channels: Channels, { monotonic = () => performance.now(), ticker = timer }: Watch): () => boolean {
    let left: number = MANY.aSecond;
    let counted = monotonic();
    let until = 0;
    let stop: (() => void) | undefined;

    function look(): void {
        for (const { heard } of channels.values()) {
            heard();
        }
        if (monotonic() > until) {
            stop?.();
            stop = undefined;
        }
    }

    return () => {
        const now = monotonic();
        left = Math.min(MANY.aSecond, left + ((now - counted) * MANY.aSecond) / 1_000);
        counted = now;
        if (left >= 1) {
            left -= 1;
            return false;
        }
        until = now + MANY.lookFor;
        stop ??= ticker(look, MANY.lookEvery);
        return true;
    };
}

interface ListeningOptions {
    readonly pool: HostPool & PoolLike;
    readonly watch: Required<Omit<Watch, 'signal' | 'monotonic' | 'ticker'>>;
    /** Has the connection's channel for as long as it listens. */
    readonly channels: Channels;
    readonly heard: () => void;
    readonly onError: (error: Error) => void;
}

/** One connection that listens, and is replaced when it is lost. */
function listening(options: ListeningOptions): Listening {
    const { watch, channels, heard, onError } = options;
    const channel = `${COMMON}_${randomUUID()}`;
    const closing = new AbortController();
    const watched = { ...watch, signal: closing.signal };
    const byPool = patiently(options.pool, watched);
    let failures = 0;
    let hearsItself = false;
    let isProving = false;
    let tried = (): void => {};
    const ready = new Promise<void>((resolve) => {
        tried = resolve;
    });

    function begun({ beside }: SharedConnection): void {
        channels.set(channel, { heard, beside });
        heard();
        tried();
        prove();
    }

    /**
     * Notifies itself by the pool: behind a pooler of transactions a connection listens, answers, and hears nothing. As long as it has not heard itself, as
     * where the pool is used up, it is taken for one that does not listen, and asked again at the next probe.
     */
    function prove(): void {
        if (!hearsItself && !isProving) {
            isProving = true;
            const ended = (): void => {
                isProving = false;
            };
            byPool.query('select pg_notify($1, $2)', [channel, PROOF]).then(ended, ended);
        }
    }

    /** Reports a failure once; another is reported only after the connection has answered for a while. */
    function failed(cause: unknown): void {
        if (failures === 0) {
            const why = cause instanceof Error ? cause.message : String(cause);
            onError(new ScanwireError('UNAVAILABLE', `Commits are not heard now, only found within a second: ${why}`, { cause }));
        }
        failures += 1;
        tried();
    }

    async function keep(): Promise<void> {
        while (!closing.signal.aborted) {
            const session = {
                channel,
                watch: watched,
                heard,
                heardItself: () => {
                    hearsItself = true;
                },
                begun,
                answered: () => {
                    failures = 0;
                    prove();
                },
            };
            await listenOnce(options.pool, session).catch((error: unknown) => {
                if (!closing.signal.aborted) {
                    failed(error);
                }
            });
            channels.delete(channel);
            hearsItself = false;
            const delay = Math.min(watch.retries.first * 2 ** (failures - 1), watch.retries.max);
            await sleep(delay, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
        }
        tried();
    }

    const kept = keep();
    return {
        ready,
        isListening: () => channels.has(channel) && hearsItself,
        async close() {
            channels.delete(channel);
            closing.abort();
            await kept;
        },
    };
}

interface ListeningSession {
    readonly channel: string;
    readonly watch: ListeningOptions['watch'] & { readonly signal: AbortSignal };
    readonly heard: () => void;
    /** Something has come by its own channel. */
    readonly heardItself: () => void;
    /** It listens, and takes statements meanwhile. */
    begun(connection: SharedConnection): void;
    /** It has answered to a probe. */
    answered(): void;
}

/** Listens on a connection of its own. @throws Why it cannot, or not any more; the reason of the signal once that is aborted. */
async function listenOnce(application: HostPool, session: ListeningSession): Promise<never> {
    const pool = ownPool(application, 1);
    try {
        return await withClient(pool as PoolLike, session.watch, (client, drop) => {
            drop(); // it is of no use to anybody else
            return listenOn(client as PoolClient, session);
        });
    } finally {
        // This is not waited for, since a connection that does not answer does not end properly.
        void pool.end();
    }
}

async function listenOn(client: PoolClient, { channel, watch, heard, heardItself, begun, answered }: ListeningSession): Promise<never> {
    // A silent connection would keep the process from ending. `unref` exists, but its type does not say so.
    (client as { unref?(): void }).unref?.();
    const lost = new AbortController();
    client.on('error', (error) => lost.abort(storeError(error)));
    client.on('notification', ({ channel: from, payload }) => {
        if (from === channel) {
            heardItself();
        }
        if (payload !== PROOF) {
            heard();
        }
    });
    const signal = AbortSignal.any([watch.signal, lost.signal]);
    const connection = shared(client as Executor, { ...watch, signal });
    let common = false;

    async function takeCommon(): Promise<void> {
        const { rows } = await connection.query<{ common: boolean }>(TAKE_COMMON, [common]);
        if (rows[0]?.common === true && !common) {
            common = true;
            await connection.query(`listen ${COMMON}`);
            heard();
        }
    }

    await connection.query(`listen "${channel}"`);
    await takeCommon();
    begun(connection);
    for (;;) {
        await sleep(watch.probeEvery, undefined, { signal, ref: false }).catch(() => signal.throwIfAborted());
        // What has answered to others need not be asked, unless it is to take over.
        if (!connection.hasAnswered() || !common) {
            await takeCommon();
        }
        answered();
    }
}
