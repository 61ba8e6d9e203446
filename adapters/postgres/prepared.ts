import { createHash } from 'node:crypto';
import type { Executor } from '../../lib/transaction.ts';

/** Statements that a connection keeps, parsed and planned, under a name: by their text, which makes the name the same in every process. */
const names = new Map<string, string>();

/** How often a connection has lost what it kept. */
const losses = new WeakMap<Executor, number>();

/** A connection that has lost what it kept so often keeps nothing any more: somebody resets it, or a pooler hands it on. */
const MAX_LOSSES = 2;

/**
 * No statement of this name (a reset, a pooler), one that was there already (a pooler), or one that was planned for results that have another
 * shape now (a migration).
 */
const LOST = /^26000$|^42P05$|^0A000$/;

/** What node-postgres understands and {@link Executor} does not ask for: a statement that may have a name, and who is called when it has ended. */
interface DriverClient {
    query(statement: DriverStatement & { readonly values: unknown[] | undefined }): Promise<QueryResult>;
    query(
        statement: DriverStatement,
        values: unknown[] | undefined,
        ended: (error: Error | null | undefined, result: QueryResult) => void,
    ): void;
}

type QueryResult = Awaited<ReturnType<Executor['query']>>;
type Answer<Row> = Promise<{ rows: Row[]; rowCount: number | null }>;

interface DriverStatement {
    readonly name?: string;
    readonly text: string;
}

/** By name, what stands behind the statements of that name. */
const bases = new Map<string, DriverStatement>();

/**
 * A statement that has nothing of its own. The driver copies each one that it is given, property by property, which takes longer than to write it to the
 * socket; what stands behind it, it reads where it is. Older ones write into what they are given, so that it is a new one each time.
 */
function bare(name: string, text: string): DriverStatement {
    const base = bases.get(name) ?? { name, text };
    bases.set(name, base);
    return Object.create(base);
}

/**
 * Marks a statement as one that a connection prepares once. For texts that are written down and often run, whose plan does not hang on how
 * much its tables hold: never for those put together from what was asked, of which there is no end.
 *
 * @returns The text.
 */
export function prepared(text: string): string {
    names.set(text, `scanwire_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`);
    return text;
}

/**
 * A connection of a node-postgres pool. It is called back and asked for no promise: of the one that it makes V8 lets neither the statement nor the rows
 * go before it looks at all of the heap, which of short statements takes a fifth of the time.
 *
 * @param prepares Whether statements marked by {@link prepared} are run under their names.
 */
export function driven(client: Executor, prepares: boolean): Executor {
    const driver = client as unknown as DriverClient;
    const callsBack = isPlain(client);
    return {
        query<Row>(text: string, values?: unknown[]) {
            const name = prepares ? nameOn(client, text) : null;
            if (!callsBack) {
                return name === null ? client.query<Row>(text, values) : (driver.query({ name, text, values }) as Answer<Row>);
            }

            const statement = name === null ? { text } : bare(name, text);
            return new Promise<QueryResult>((resolve, reject) =>
                driver.query(statement, values, (error, given) => (error ? reject(error) : resolve(given))),
            ) as Answer<Row>;
        },
    };
}

/** Whether nothing of the application's stands before the driver's `query`: what wraps it may know of promises only. */
function isPlain(client: object): boolean {
    let owner: object | null = client;
    while (owner !== null && !Object.hasOwn(owner, 'query')) {
        owner = Object.getPrototypeOf(owner) as object | null;
    }
    return owner !== null && owner !== client && Object.hasOwn(owner, '_pulseQueryQueue');
}

/**
 * Whether the statement, alone in its transaction, is to be run again since the connection has lost what it kept. It has done nothing then: an
 * error that the server answers has undone it. Another name is used from then on, since node-postgres takes the old one for known.
 */
export function forgot(client: Executor, text: string, code: string): boolean {
    if (!wasForgotten(code) || nameOn(client, text) === null) {
        return false;
    }
    losses.set(client, (losses.get(client) ?? 0) + 1);
    return true;
}

/** Whether a statement was refused since its connection has lost what it kept. */
export function wasForgotten(code: string): boolean {
    return LOST.test(code);
}

function nameOn(client: Executor, text: string): string | null {
    const lost = losses.get(client) ?? 0;
    const name = lost < MAX_LOSSES ? names.get(text) : undefined;
    return name === undefined ? null : `${name}${lost === 0 ? '' : `_${lost}`}`;
}
