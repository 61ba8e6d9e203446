import type { Request } from '@hapi/hapi';
import { inTime } from '../in-time.ts';
import type { HandledOperation } from './handlers.ts';
import { endpoints, type OperationName } from './operations.ts';

/** They change nothing either, though they have a body. */
const QUESTIONS: ReadonlySet<OperationName> = new Set(['explainExporter', 'previewExporter', 'previewDraft']);

/**
 * Whether an operation only reads, so that nothing is left half done when nobody waits for it any more. The doctor waits for name servers too, and says himself
 * what is silent; a dry run goes through as much as what it stands for.
 */
function isReading(name: OperationName): boolean {
    return name !== 'diagnose' && (endpoints[name].method === 'GET' || QUESTIONS.has(name));
}

/** Does operations for a request: those that only read {@link inTime}, others for as long as they take. */
export function readingInTime(request: Request, perform: HandledOperation): HandledOperation {
    return async (name, input) => await (isReading(name) ? inTime(request, () => perform(name, input)) : perform(name, input));
}
