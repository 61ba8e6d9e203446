import { readIndex } from '../read-index.ts';

/** Reads an index once, from a process of its own, over a connection that is there. Prints what it took. */
const [url = '', token = ''] = process.argv.slice(2);
await readIndex(`${url}/1`, token);
process.stdout.write(`${JSON.stringify(await readIndex(url, token))}\n`);
