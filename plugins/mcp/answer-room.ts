import { ScanwireError } from '../../lib/errors.ts';
import { jsonText } from '../../lib/printable.ts';

/**
 * Bytes of rows in one answer, as JSON: more than assistants take in at once. Each row is in the answer twice, as structure and as text, and
 * while the answer is made there are some copies of it.
 */
const MAX_ROWS = 1_048_576;

/** What is left for rows in the answer to one request, whose calls share it. */
export interface AnswerRoom {
    /** Whether the row goes in. The first of all does, however large it is; behind one that did not, none does. */
    takes(row: object): boolean;
    /** @throws ScanwireError `INVALID_INPUT` once a row did not go in. */
    assertLeft(): void;
}

/** All of it. */
export function answerRoom(): AnswerRoom {
    let [used, isFull] = [0, false];
    return {
        takes(row) {
            const size = Buffer.byteLength(jsonText(row));
            isFull ||= used > 0 && used + size > MAX_ROWS;
            used += isFull ? 0 : size;
            return !isFull;
        },

        assertLeft() {
            if (isFull) {
                throw new ScanwireError('INVALID_INPUT', 'The answer has no room for more rows: call this tool in a request of its own');
            }
        },
    };
}
