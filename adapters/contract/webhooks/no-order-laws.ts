import assert from 'node:assert/strict';
import { ids, unlessRefused } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import type { WebhookBench } from './fixture.ts';
import { accept, addOrdered } from './ordering-laws.ts';

/** What a store does that keeps no order. It may refuse exporters that are ordered, or events with a key, which it is never given. */
export const noOrderLaws: Laws<WebhookBench> = {
    async 'refuses a key, or hands out what has one as if it had none, where it keeps no order'(bench) {
        await unlessRefused(addOrdered(bench));
        const first = await unlessRefused(accept(bench, ['a']));
        // To refuse only what comes after another of its key is to heed keys.
        const accepted = first === null ? [] : [...first, ...(await accept(bench, ['a', 'a']))];
        assert.deepEqual(ids(await bench.listed()).toSorted(), accepted.toSorted());
        assert.deepEqual((await bench.dispatchedIds()).toSorted(), accepted.toSorted());
    },
};
