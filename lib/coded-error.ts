/** An error with a code for programs and one sentence for people. */
export abstract class CodedError<Code extends string> extends Error {
    readonly code: Code;

    constructor(code: Code, message: string, cause?: unknown) {
        super(message, cause === undefined ? undefined : { cause });
        this.code = code;
    }
}
