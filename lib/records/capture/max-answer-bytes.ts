import { MAX_LINE_BYTES } from '../max-line-bytes.ts';

/** What a record holds besides `data`: its keys, a path and a subject of the greatest length, all characters escaped. */
const REST_OF_LINE = 32_768;

/** So many bytes in base64, with the rest of the record, fit into the longest line that is read by default. */
export const MAX_ANSWER_BYTES: number = ((MAX_LINE_BYTES - REST_OF_LINE) / 4) * 3;
