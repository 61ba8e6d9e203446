/** SQLSTATE of an error that the database raised, else undefined. */
export function sqlState(error: unknown): string | undefined {
    return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** SQLSTATE of a value that is unique and taken. */
export const UNIQUE_VIOLATION = '23505';
