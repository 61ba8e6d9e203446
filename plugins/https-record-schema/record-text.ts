import type { StoredRecord } from '../../lib/records/index.ts';

export interface PageOptions {
    /** Most records of the page. What is read beyond shows only that there is another page. */
    readonly limit: number;
    /** Link to the page behind a record. */
    next(after: number): string;
}

type Batches = AsyncIterable<readonly StoredRecord[]>;

/** One JSON object on each line. */
export async function* linesText(batches: Batches): AsyncGenerator<string, void, undefined> {
    for await (const batch of batches) {
        yield batch.map((stored) => `${JSON.stringify(stored)}\n`).join('');
    }
}

/** `{"records":[…],"next":"…"}`; `next` is null on the last page. */
export async function* pageText(batches: Batches, { limit, next }: PageOptions): AsyncGenerator<string, void, undefined> {
    let count = 0;
    let last = 0;
    let link: string | null = null;
    yield '{"records":[';
    for await (const batch of batches) {
        const shown = batch.slice(0, limit - count);
        link = shown.length < batch.length ? next(shown.at(-1)?.id ?? last) : null;
        if (shown.length > 0) {
            yield `${count === 0 ? '' : ','}${shown.map((stored) => JSON.stringify(stored)).join(',')}`;
        }

        count += shown.length;
        last = shown.at(-1)?.id ?? last;
    }

    yield `],"next":${JSON.stringify(link)}}`;
}
