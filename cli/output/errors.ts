import { ScanwireError } from '../../lib/errors.ts';
import { jsonText, printable } from '../../lib/printable.ts';

/** What is wrong in the arguments themselves, whatever they are about: the exit code is that of wrong usage. */
export class WrongUsage extends ScanwireError {
    constructor(message: string, field?: string) {
        super('INVALID_INPUT', message, field === undefined ? {} : { field });
    }
}

/** Prints one line on stderr with the field and the reason, and one more for each further bad line of a file. A fault of our own is printed with its message too, and never with a stack. */
export function printError(error: unknown, json: boolean): void {
    const { code, field = null, message, problems } = error instanceof ScanwireError ? error : internal(error);
    const others = problems?.slice(1).map((problem) => `  ${printable(problem.message)}\n`) ?? [];
    process.stderr.write(
        json
            ? `${jsonText({ error: { code, field, message, problems } })}\n`
            : `scanwire: ${printable(message)}${named(field, message)}\n${others.join('')}`,
    );
}

/** Prints one line on stderr about something that works, but had better be done in another way. */
export function printWarning(field: string, message: string, json: boolean): void {
    process.stderr.write(json ? `${jsonText({ warning: { field, message } })}\n` : `scanwire: warning: ${printable(message)}\n`);
}

function internal(
    error: unknown,
): Pick<Partial<ScanwireError>, 'field' | 'problems'> & { readonly code: string; readonly message: string } {
    return { code: 'INTERNAL', message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}

/** The field in brackets, where the message does not name it already, as most do. */
function named(field: string | null, message: string): string {
    return field === null || message.toLowerCase().includes(field.toLowerCase()) ? '' : ` (${printable(field)})`;
}

const REASONS: Readonly<Record<'read' | 'write', Readonly<Record<string, string>>>> = {
    read: { ENOENT: 'there is no such file', EISDIR: 'it is a folder' },
    write: { ENOENT: 'there is no such folder', EISDIR: 'it is a folder' },
};

/** Says why a file cannot be read or written, from the `code` of the system's error. */
export function fileError(action: 'read' | 'write', file: string, cause: unknown): ScanwireError {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    const reason = REASONS[action][code] ?? code;
    return new ScanwireError('INVALID_INPUT', `Cannot ${action} ${file}: ${reason}`, {
        ...(action === 'read' && { field: 'file' }),
        cause,
    });
}

/** Milliseconds in which a failure is not printed a second time. */
const QUIET = 10_000;

/** Prints what goes wrong in the background on stderr, a line each. What repeats is printed once in a while only. */
export function errorLog(): (error: unknown) => void {
    const saidAt = new Map<string, number>();
    return (error) => {
        const message = error instanceof Error ? error.message : String(error);
        const now = performance.now();
        if (now - (saidAt.get(message) ?? Number.NEGATIVE_INFINITY) < QUIET) {
            return;
        }

        // What was said once and long ago must not fill the memory.
        if (saidAt.size > 1000) {
            saidAt.clear();
        }

        saidAt.set(message, now);
        process.stderr.write(`${new Date().toISOString()} ${printable(message)}\n`);
    };
}

/** Says why a server cannot listen, from the `code` of the system's error. @param option That which names the port. */
export function listenError(error: unknown, host: string, port: number, option = '--port'): unknown {
    const elsewhere = option === '--port' ? '--host' : option;
    const reasons: Readonly<Record<string, string>> = {
        EADDRINUSE: `is in use: choose another with ${option}`,
        EACCES: `needs rights that this user does not have: choose one above 1023 with ${option}`,
        EADDRNOTAVAIL: `cannot be listened on: this machine does not have that address, name one that it has with ${elsewhere}`,
        ENOTFOUND: `cannot be listened on: the host name is unknown, name another with ${elsewhere}`,
    };
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = reasons[code];
    return reason === undefined
        ? error
        : new ScanwireError('CONFLICT', `Port ${port} of ${host} ${reason}`, { field: 'port', cause: error });
}

/** What is wrong with the usage, in one line. */
export function usageError(text: string): string {
    const line = text
        .replace(/^error: /, '')
        .trim()
        .replaceAll('\n', ' ');
    return printable(line);
}
