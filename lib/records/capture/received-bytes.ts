const LEAST_ROOM = 16_384;

/** Bytes as they come in, in one piece: those that come one by one must not take an object each. */
export interface ReceivedBytes {
    /** Adds what still fits; the first chunk is kept, not copied. @returns All bytes so far, valid until the next call. */
    push(chunk: Buffer): Buffer;
}

export function receivedBytes(maxBytes: number): ReceivedBytes {
    let room: Buffer = Buffer.alloc(0);
    let length = 0;

    return {
        push(chunk) {
            const kept = chunk.subarray(0, maxBytes - length);
            if (length === 0) {
                length = kept.length;
                room = kept;
                return room;
            }

            if (length + kept.length > room.length) {
                const larger = Buffer.allocUnsafeSlow(Math.max(LEAST_ROOM, 2 * room.length, length + kept.length));
                room.copy(larger, 0, 0, length);
                room = larger;
            }

            room.set(kept, length);
            length += kept.length;
            return room.subarray(0, length);
        },
    };
}
