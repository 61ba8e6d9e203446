/** What a command has to say. */
export interface Answer {
    /** For `--json`. */
    readonly json: unknown;
    /** For people, without the last line break. Asked for only when it is printed. */
    readonly text: () => string | Promise<string>;
    /** True when the command did its work and the result is bad: exit code 1. */
    readonly failed?: boolean;
    /** True when stdout carries something else. */
    readonly aside?: boolean;
}
