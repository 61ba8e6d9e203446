import type { Executor } from '../../../lib/transaction.ts';
import type { TextBatch } from './text-batches.ts';

/**
 * A client that reads what selects an id and a text, in this order, as one {@link TextBatch}. node-postgres makes a string of all that it
 * receives but of what is copied out, which it hands on as it came: these texts go out as bytes that nothing here has looked into.
 */
export function copying(client: Executor): Executor {
    return {
        async query<Row>(select: string) {
            const batch = copiesOut(client) ? await copied(client, select) : batchOf((await client.query<TextOfRow>(select)).rows);
            return { rows: [batch as Row], rowCount: batch.rows };
        },
    };
}

/** What node-postgres calls of a query of somebody else's making, as pg-cursor is one. */
interface Submittable {
    /** Where the client limits the time of queries, it puts another around this one. */
    callback: (error: Error | null) => void;
    submit(connection: Connection): void;
    handleCopyData(message: { readonly chunk: Buffer }): void;
    handleCommandComplete(): void;
    handleReadyForQuery(): void;
    handleError(error: Error): void;
}

interface Connection {
    query(text: string): void;
}

/** The client in JavaScript: the native one has no such connection, and one that sends statements ahead takes no such query. */
interface DriverClient {
    readonly connection: Connection;
    readonly pipeline?: boolean;
    query(query: Submittable): unknown;
}

function copiesOut(client: object): client is DriverClient {
    const { connection, pipeline = false } = client as Partial<DriverClient>;
    return typeof connection?.query === 'function' && !pipeline;
}

function copied(client: DriverClient, select: string): Promise<TextBatch> {
    return new Promise((resolve, reject) => {
        const copy = copiedRows();
        client.query({
            callback: (error) => (error === null ? resolve(copy.batch()) : reject(error)),
            submit: (connection) => connection.query(`copy (${select}) to stdout (format binary)`),
            handleCopyData: ({ chunk }) => copy.add(chunk),
            handleCommandComplete() {},
            handleReadyForQuery() {
                this.callback(null);
            },
            handleError(error) {
                this.callback(error);
            },
        });
    });
}

/** What stands before the rows, up to the length of an extension of it. */
const SIGNATURE_BYTES = 15;
/** Of a row of two columns: how many there are, the length of the id, the id, the length of the text. */
const [ID, LENGTH, TEXT] = [6, 10, 14] as const;

/** Rows in the binary form of `copy`, of which each comes in a message of its own. */
function copiedRows() {
    const pieces = textPieces();
    let rows = 0;
    let last: number | null = null;
    let isText = true;
    let hasBegun = false;

    return {
        add(chunk: Buffer): void {
            const start = hasBegun ? 0 : SIGNATURE_BYTES + 4 + chunk.readInt32BE(SIGNATURE_BYTES);
            hasBegun = true;
            if (start + TEXT > chunk.length) {
                // The end.
                return;
            }

            rows += 1;
            last = chunk.readInt32BE(start + ID);
            isText &&= chunk.readInt32BE(start + LENGTH) >= 0;
            if (isText) {
                pieces.add(chunk.length - start - TEXT, (piece, at) => chunk.copy(piece, at, start + TEXT));
            }
        },

        batch: (): TextBatch => ({ texts: isText ? pieces.all() : null, last, rows }),
    };
}

/** What is written at once, as large as what is received at once. */
const PIECE_BYTES = 65_536;
const COMMA = 44;

/** Texts as bytes, with commas between them. They are copied: the driver receives the next message in the same place. */
function textPieces() {
    const pieces: Uint8Array[] = [];
    let piece = Buffer.alloc(0);
    let filled = 0;

    function finish(): void {
        if (filled > 0) {
            pieces.push(piece.subarray(0, filled));
        }
        filled = 0;
    }

    return {
        /** @param write Writes a text of at most `maxBytes` bytes into `piece` from `at` on, and returns how many bytes it wrote. */
        add(maxBytes: number, write: (piece: Buffer, at: number) => number): void {
            if (filled + 1 + maxBytes > piece.length) {
                finish();
                piece = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, 1 + maxBytes));
            }
            if (filled > 0) {
                piece[filled] = COMMA;
                filled += 1;
            }
            filled += write(piece, filled);
        },

        all(): readonly Uint8Array[] {
            finish();
            return pieces;
        },
    };
}

/** A row as the database answers. */
export interface TextOfRow {
    readonly id: number;
    /** Null where it has none, or rows may not be read so. */
    readonly text: string | null;
}

/** Characters of a short batch, of which one text is made. One that is longer would be a string that V8 maps memory for, and unmaps it behind each. */
const SHORT = 32_768;

/** Rows as one batch. */
export function batchOf(rows: readonly TextOfRow[]): TextBatch {
    const texts = rows.map(({ text }) => text);
    const counted = { last: rows.at(-1)?.id ?? null, rows: rows.length };
    if (!texts.every((text) => text !== null)) {
        return { ...counted, texts: null };
    }
    if (texts.reduce((sum, { length }) => sum + length, 0) <= SHORT) {
        return { ...counted, texts: rows.length > 0 ? [texts.join()] : [] };
    }

    const pieces = textPieces();
    for (const text of texts) {
        pieces.add(Buffer.byteLength(text), (piece, at) => piece.write(text, at));
    }
    return { ...counted, texts: pieces.all() };
}
