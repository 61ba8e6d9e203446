import type { Request } from '@hapi/hapi';

/** Aborts when the connection is gone: a small batch can hold minutes of work that nobody would wait for. */
export function untilClosed({ raw }: Request): AbortSignal {
    const controller = new AbortController();
    raw.res.once('close', () => controller.abort());
    return controller.signal;
}
