import assert from 'node:assert';
import { parseResponse } from '../../lib/records/index.ts';
import { mutated } from '../lib/records/response/mutated.ts';
import { sampleResponses } from '../lib/records/response/sample-responses.ts';
import { isSound, MAX_BODY_BYTES } from '../lib/records/response/sound-response.ts';

/** One mutated response, read. */
export function fuzzResponse(random: () => number): void {
    const sample = sampleResponses[Math.floor(random() * sampleResponses.length)] as Buffer;
    const bytes = mutated(sample, random);
    assert(isSound(parseResponse(bytes, { maxBodyBytes: MAX_BODY_BYTES }), bytes), 'what was read does not fit the bytes');
}
