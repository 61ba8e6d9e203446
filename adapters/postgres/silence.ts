/** Whether a database that has not answered a statement for a while answers anything: one that does is at work, however long that takes. */
import { within } from '../../lib/within.ts';
import { silent } from './database-errors.ts';
import { isHostPool } from './own-pool.ts';

/** Milliseconds after which a statement that is not answered makes somebody ask, and after which again. */
const ASK_AFTER = 3_000;
/** Milliseconds in which a new connection is made and answers: those that a pool has for one. */
const ANSWER = 4_000;

/** How long a database is waited for, and the pool like whose connections another one is made meanwhile, to ask whether it has fallen silent. */
export type Watched<Patience> = Patience & { readonly beside?: object | undefined };

/** Who looks whether the database is silent before a change looks while it is under way as well. */
export function watching<Patience extends { readonly probe?: number }>(pool: object, patience: Patience): Watched<Patience> {
    return patience.probe === undefined ? patience : { ...patience, beside: pool };
}

/** A client of node-postgres, as its pools make them. */
interface AskingClient {
    readonly connection?: { readonly stream: { destroy(): void } };
    connect(): Promise<unknown>;
    query(text: string): Promise<unknown>;
    on(event: 'error', listener: () => void): unknown;
}

/** By pool: all who wait for its database ask together. */
const asking = new WeakMap<object, Promise<boolean>>();

/**
 * What a statement is answered with, as long as its database answers others over connections of their own. Of a pool that is none of node-postgres no
 * connection can be made beside it, and all of the time that the statement has is waited for.
 *
 * @throws ScanwireError `UNAVAILABLE` when the database has fallen silent, and whatever the answer rejects with.
 */
export async function unlessSilent<T>(pool: object, answer: Promise<T>): Promise<T> {
    const ended = answer.then(
        () => false,
        () => false,
    );
    for (;;) {
        const isLate = await within(ended, { timeout: ASK_AFTER }).catch(() => true);
        if (!isLate || !isHostPool(pool)) {
            return await answer;
        }
        if (await Promise.race([ended, fallenSilent(pool)])) {
            throw silent('has fallen silent, and what was asked of it may have been done');
        }
    }
}

function fallenSilent(pool: object): Promise<boolean> {
    const asked = asking.get(pool) ?? ask(pool).finally(() => asking.delete(pool));
    asking.set(pool, asked);
    return asked;
}

/** An error is an answer too: nothing but silence says that nobody is there. */
async function ask(pool: object): Promise<boolean> {
    const { Client, options } = pool as { readonly Client: new (options: object) => AskingClient; readonly options: object };
    // Not a spread: pg hides password and TLS key as properties that are not enumerable.
    const own = Object.defineProperties({}, Object.getOwnPropertyDescriptors(options));
    const client = new Client(Object.assign(own, { connectionTimeoutMillis: 0 }));
    client.on('error', () => {});
    const answered = client
        .connect()
        .then(() => client.query('select'))
        .then(
            () => false,
            () => false,
        );
    try {
        return await within(answered, { timeout: ANSWER }).catch(() => true);
    } finally {
        client.connection?.stream.destroy();
    }
}
