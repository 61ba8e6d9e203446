/** Longest line of a file of records unless told otherwise, without its line ending: 1 MiB. */
export const MAX_LINE_BYTES = 1_048_576;
