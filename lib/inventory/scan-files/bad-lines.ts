import { type Problem, ScanwireError } from '../../errors.ts';

/** So many bad lines of a file are named. */
export const MAX_BAD_LINES = 100;

/** What is wrong with a file of hosts, line by line, so that all of it can be mended at once. */
export interface BadLines {
    /**
     * Notes a bad line.
     *
     * @throws ScanwireError with all that were noted, where these are enough.
     */
    add(line: number, error: unknown): void;
    /** Whether one was noted. */
    found(): boolean;
    /** Throws one error with all that were noted, the last of which is what ended the reading. */
    end(line?: number, error?: unknown): void;
}

/** Notes the bad lines of one file. An error that is none of a line is thrown as it is. */
export function badLines(): BadLines {
    const problems: Problem[] = [];
    let first: ScanwireError | null = null;

    function note(line: number, error: unknown): void {
        if (!(error instanceof ScanwireError)) {
            throw error;
        }

        first ??= error;
        problems.push({ line, ...(error.field !== undefined && { field: error.field }), message: error.message });
    }

    function refusal({ message, field, cause }: ScanwireError): ScanwireError {
        const more = problems.length - 1;
        const others = more === 0 ? '' : `; ${more} more ${more === 1 ? 'line is' : 'lines are'} bad`;
        const unread = problems.length >= MAX_BAD_LINES ? ', and what is behind them was not read' : '';
        return new ScanwireError('INVALID_INPUT', `${message}${others}${unread}`, {
            ...(field !== undefined && { field }),
            cause,
            problems,
        });
    }

    return {
        add(line, error) {
            note(line, error);
            if (first !== null && problems.length >= MAX_BAD_LINES) {
                throw refusal(first);
            }
        },

        found: () => first !== null,

        end(line, error) {
            if (line !== undefined) {
                note(line, error);
            }

            if (first !== null) {
                throw refusal(first);
            }
        },
    };
}
