import { parentPort, workerData } from 'node:worker_threads';
import { readScan } from '../../../../lib/inventory/scan-files/read-scan.ts';

/** A file with so many hosts, and whether all that is read is kept. */
export interface Read {
    readonly head: string;
    /** A host, with `#` in place of its number. */
    readonly host: string;
    readonly end: string;
    readonly count: number;
    readonly keeps?: boolean;
}

const AT_ONCE = 100;
const { head, host, end, count, keeps = false } = workerData as Read;

async function* file(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(head);
    for (let first = 0; first < count; first += AT_ONCE) {
        yield Buffer.from(Array.from({ length: AT_ONCE }, (_, index) => host.replaceAll('#', addressOf(first + index))).join(''));
    }
    yield Buffer.from(end);
}

function addressOf(index: number): string {
    return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
}

const kept: object[] = [];
let hosts = 0;
for await (const read of readScan(file())) {
    hosts += 1;
    if (keeps) {
        kept.push(read);
    }
}
parentPort?.postMessage(hosts);
