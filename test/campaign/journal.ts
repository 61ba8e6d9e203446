import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** Milliseconds of the machine's clock, which no shifted clock of a process touches. */
export function trueTime(): number {
    return performance.timeOrigin + performance.now();
}

/** What hosts publish: `alone`, several `together` in one statement, or in a transaction of their own. */
export const PUBLICATIONS = ['alone', 'together', 'committed', 'rolled back'] as const;

/** One of {@link PUBLICATIONS}. */
export type Publication = (typeof PUBLICATIONS)[number];

/** So many events are published `together`. */
export const TOGETHER = 3;

/** An event that a host knows to be accepted. */
export interface Accepted {
    readonly eventId: string;
    readonly at: number;
    /** When the host began to publish it. */
    readonly from: number;
    /** Absent for one that waits for no other. */
    readonly orderKey?: string;
}

/** A POST that has arrived whole. */
export interface Arrival {
    readonly is: 'arrival';
    /** Number of the POST. */
    readonly post: number;
    readonly at: number;
    readonly exporter: string;
    /** Address of the loopback network that it was sent to: each start of a process has one of its own. */
    readonly to: string;
    readonly kind: string;
    readonly messageId: string;
    /** The type of its body, which tells the format that it was made in. */
    readonly contentType: string;
    /** SHA-256 of the body. */
    readonly bodyHash: string;
    /** Of the body alone, the same on every try. */
    readonly signature: string;
    /** Why the signatures are wrong, null when they are right. */
    readonly refusal: string | null;
    /** As the host meant it. */
    readonly publication: string;
}

/** The end of a POST. */
export interface Answer {
    readonly is: 'answer';
    readonly post: number;
    readonly at: number;
    /** Null when the connection was broken off instead. */
    readonly status: number | null;
    /** False when the sender had gone before it was handed to the system. */
    readonly written: boolean;
}

/** A file to which processes append lines, each whole even when the process is killed. */
export function journal<Line>(file: string): { write(line: Line): void; close(): void } {
    const descriptor = openSync(file, 'a');
    return {
        write: (line) => void writeSync(descriptor, `${JSON.stringify(line)}\n`),
        close: () => closeSync(descriptor),
    };
}

/** The lines of such a file, `[]` when there is none. */
export function journalLines<Line>(file: string): Line[] {
    closeSync(openSync(file, 'a'));
    return readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
}
