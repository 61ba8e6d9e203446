import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Request } from '@hapi/hapi';

const PATIENCE_MS = 2_000;

/**
 * Throws away what the client still sends, until it has sent everything or a while has passed. A connection that is closed while
 * bytes come in is reset, and the client may lose the answer that was on its way.
 */
export async function restReceived({ payload }: Request): Promise<void> {
    const received = payload as Readable;
    // A listener, since a reader that is about to leave may hold the flow back until then.
    received.on('data', () => {});
    await finished(received, { writable: false, signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => {});
}
