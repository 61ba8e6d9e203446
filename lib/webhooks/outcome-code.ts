import type { OutcomeCode } from './outcome.ts';
export type Retryability = 'success' | 'retry' | 'short' | 'permanent' | 'gone';
export function retryability(code: OutcomeCode): Retryability {
    return code === 'delivered' ? 'success' : code === 'gone' ? 'gone' : 'retry';
}
