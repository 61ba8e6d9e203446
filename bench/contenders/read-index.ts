import { readIndex } from '../read-index.ts';

/** Reads an index once, or so many times at once, from a process of its own, over a connection that is there. Prints what the first one took. */
const [url = '', token = '', readers = '1'] = process.argv.slice(2);
await readIndex(`${url}/1`, token);
const [first] = await Promise.all(Array.from({ length: Number(readers) }, () => readIndex(url, token)));
process.stdout.write(`${JSON.stringify(first)}\n`);
