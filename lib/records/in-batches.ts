import { gathered } from '../gathered.ts';
import type { RecordLine } from './read-lines.ts';

const LINES = 500;
/** In characters, most of which are base64. One record may exceed it. */
const SIZE = 4 * 1_048_576;

/** Lines as they come, in batches of a size that a store takes at once and a process can hold. */
export function inBatches(lines: AsyncIterable<RecordLine>): AsyncGenerator<readonly RecordLine[], void, undefined> {
    return gathered(lines, { maxItems: LINES, maxSize: SIZE, sizeOf });
}

function sizeOf(line: RecordLine): number {
    if (!line.ok) {
        return 0;
    }

    const { data, path = '', vhost = '', subject: { OU = '', CN = '' } = {} } = line.record;
    return data.length + path.length + vhost.length + OU.length + CN.length;
}
