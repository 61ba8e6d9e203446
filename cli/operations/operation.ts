import type { System } from '../system.ts';

/**
 * One thing that can be asked of a server: the command line asks through the socket of the data folder or runs it in its own
 * process, and any other interface can serve the same as routes.
 */
export interface Operation<Input extends object, Output> {
    /** For example `keys.create`. */
    readonly name: string;
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    /** Path of the route; a part in braces is the field of that name in the input. */
    readonly path: string;
    /** True where the body of the request is not JSON but a stream, given to `run` as `source`; other fields go into the query. */
    readonly streamed?: true;
    /** True for one that makes sense without any data yet: the data folder is made for it. */
    readonly creates?: true;
    /** True for one that waits for a delivery: where no server runs, this process delivers meanwhile. */
    readonly delivers?: true;
    /** What it answers survives `JSON.stringify`. */
    run(system: System, input: Input): Promise<Output>;
}

/** The operation as it stands, with its types inferred. */
export function operation<Input extends object, Output>(definition: Operation<Input, Output>): Operation<Input, Output> {
    return definition;
}
