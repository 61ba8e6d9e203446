import { ScanwireError } from '../../lib/scanwire-error.ts';

/** What is said of an error in writing a file; an error that is not of the file system stays as it is. */
export function unwritable(file: string, cause: unknown): unknown {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    return syscall === undefined ? cause : new ScanwireError('INVALID_INPUT', `Cannot write ${file}: ${reasonOf(code)}`, { cause });
}

function reasonOf(code: string | undefined): string {
    switch (code) {
        case 'ENOENT':
            return 'there is no such folder';
        case 'EISDIR':
            return 'it is a folder';
        default:
            return code ?? 'unknown error';
    }
}
