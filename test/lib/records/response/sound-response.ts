import { type ParsedResponse, RESPONSE_PROBLEMS } from '../../../../lib/records/index.ts';

/** The limit that {@link isSound} expects to be kept. */
export const MAX_BODY_BYTES = 2_000;

/** Whether the response is one that these bytes can lead to. */
export function isSound(response: ParsedResponse, bytes: Uint8Array): boolean {
    if (!response.http) {
        return response.bytes.equals(bytes);
    }

    const { status, headers, rawBody, body, title, problems } = response;
    return (
        Number.isInteger(status) &&
        headers.length <= 1000 &&
        headers.every(({ name, rawName, value }) => name !== '' && rawName.toLowerCase() === name && !value.includes('\n')) &&
        rawBody.equals(bytes.subarray(bytes.length - rawBody.length)) &&
        body.length <= MAX_BODY_BYTES &&
        (title === null || title.length <= 512) &&
        problems.every((problem) => RESPONSE_PROBLEMS.includes(problem)) &&
        new Set(problems).size === problems.length
    );
}
