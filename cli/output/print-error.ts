import { ScanwireError } from '../../lib/scanwire-error.ts';
import { printable } from './printable.ts';

/** One line on stderr that names field and reason. What is our own fault is said with its message too, never with a stack. */
export function printError(error: unknown, json: boolean): void {
    const { code, field, message } = described(error);
    process.stderr.write(
        json ? `${JSON.stringify({ error: { code, field, message } })}\n` : `scanwire: ${printable(message)}${named(field, message)}\n`,
    );
}

interface Described {
    readonly code: string;
    readonly field: string | null;
    readonly message: string;
}

function described(error: unknown): Described {
    if (error instanceof ScanwireError) {
        return { code: error.code, field: error.field ?? null, message: error.message };
    }

    return { code: 'INTERNAL', field: null, message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}

/** Most messages name their field. */
function named(field: string | null, message: string): string {
    return field === null || message.toLowerCase().includes(field.toLowerCase()) ? '' : ` (${printable(field)})`;
}
