import type { CaptureTarget, HttpsRecord } from '../../../lib/records/index.ts';

/** Which targets a file of records answers already. Holds a short text or two for each record. */
export interface CapturedSet {
    add(record: HttpsRecord): void;
    /** A target without an address of its own has been captured at whatever address. */
    has(target: CaptureTarget): boolean;
}

export function capturedSet(): CapturedSet {
    const keys = new Set<string>();
    const keyOf = (host: string, port: number, path: string, ip: string): string => `${ip} ${host} ${port} ${path}`;

    return {
        add({ host, ip, port, path = '/' }) {
            keys.add(keyOf(host, port, path, '')).add(keyOf(host, port, path, ip));
        },
        has: ({ host, port, path, address = '' }) => keys.has(keyOf(host, port, path, address)),
    };
}
