/** The addresses that rows are asked for by. */

import { type AddressRange, addressRange, inRanges } from '../../lib/address-range.ts';
import { ScanwireError } from '../../lib/errors.ts';

/** Addresses, blocks and ranges, of which a row has one. */
export interface AskedAddresses {
    /** Where there is one alone, which a store may have an index for. */
    readonly single: AddressRange | undefined;
    readonly have: (address: unknown) => boolean;
}

/** So many at most: each is parsed before the first row is read. */
export const MAX_ADDRESSES = 1000;

/**
 * What texts ask for, parsed once, by the first list that heeds it.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `address`, when it is called.
 */
export function askedAddresses(texts: readonly string[]): () => AskedAddresses {
    let asked: AskedAddresses | undefined;
    return () => {
        asked ??= parsed(texts);
        return asked;
    };
}

function parsed(texts: readonly string[]): AskedAddresses {
    if (texts.length > MAX_ADDRESSES) {
        // In the words that JSON-RPC has for its list of them.
        const message = `address must contain less than or equal to ${MAX_ADDRESSES} items`;
        throw new ScanwireError('INVALID_INPUT', message, { field: 'address' });
    }

    const ranges = texts.map(addressRange);
    return { single: ranges.length === 1 ? ranges[0] : undefined, have: inRanges(ranges) };
}
