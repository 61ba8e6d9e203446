import type { Operation } from './operations/operation.ts';
import type { Answer } from './output/answer.ts';

/** What every command is called with. */
export interface Invocation {
    /** Path of the data folder as the user gave it. */
    readonly data: string;
    /** Prints one JSON document in place of text. */
    readonly json: boolean;
}

/** A command at work: its arguments, its options, and the operations it may ask for. */
export interface Call extends Invocation {
    readonly args: readonly string[];
    readonly options: Readonly<Record<string, unknown>>;
    /** Runs the operation in the server of the data folder, or here where none runs. Times in the answer are ISO 8601 texts by then. */
    perform<Input extends object, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
}

export type Handler = (call: Call) => Promise<Answer | undefined>;
