/** All bytes of a source; null, and the rest unread, when they are more than `max`. */
export async function readAll(source: AsyncIterable<Uint8Array>, max: number): Promise<Buffer | null> {
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of source) {
        length += part.byteLength;
        if (length > max) {
            return null;
        }

        parts.push(part);
    }

    return Buffer.concat(parts);
}
