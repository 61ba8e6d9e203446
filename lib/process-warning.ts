/** Told what nobody need act upon at once, as a sentence. */
export type OnWarning = (message: string) => void;

/** Where a warning goes that nobody has named a place for: Node's own, on stderr as a rule. */
export function processWarning(message: string): void {
    process.emitWarning(message, 'ScanwireWarning');
}

/** The warning of something that failed and does not make the whole fail. */
export function warningOf(what: string, error: unknown): string {
    return `${what}: ${error instanceof Error ? error.message : String(error)}`;
}
