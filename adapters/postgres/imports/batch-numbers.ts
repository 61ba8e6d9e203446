import { hash } from 'node:crypto';

/** In which batch an address is. */
export interface BatchNumbers {
    get(address: string): number | undefined;
    set(address: string, number: number): void;
}

/**
 * Numbers by address, for millions of them: 12 bytes for each place of a table that is half full at most. Of an address it has 48 bits; were two
 * ever taken for one, one of them would be stored in two steps.
 */
export function batchNumbers(): BatchNumbers {
    let keys = new Float64Array(1024);
    /** One more than the number, so that 0 is none. */
    let numbers = new Uint32Array(1024);
    let count = 0;

    function placeOf(key: number): number {
        let place = key % keys.length;
        while (numbers[place] !== 0 && keys[place] !== key) {
            place = (place + 1) % keys.length;
        }
        return place;
    }

    function grow(): void {
        const [oldKeys, oldNumbers] = [keys, numbers];
        keys = new Float64Array(2 * oldKeys.length);
        numbers = new Uint32Array(2 * oldKeys.length);
        for (const [index, number] of oldNumbers.entries()) {
            if (number !== 0) {
                const place = placeOf(oldKeys[index] as number);
                keys[place] = oldKeys[index] as number;
                numbers[place] = number;
            }
        }
    }

    return {
        get(address) {
            const number = numbers[placeOf(hashOf(address))] ?? 0;
            return number === 0 ? undefined : number - 1;
        },

        set(address, number) {
            if (2 * (count + 1) > keys.length) {
                grow();
            }

            const key = hashOf(address);
            const place = placeOf(key);
            count += numbers[place] === 0 ? 1 : 0;
            keys[place] = key;
            numbers[place] = number + 1;
        },
    };
}

/** Of a hash that nobody can aim at: who writes a file of hosts chooses the addresses. Where there is none, the database refuses the host. */
function hashOf(address: string | undefined): number {
    return Number.parseInt(hash('sha256', `${address}`, 'hex').slice(0, 12), 16);
}
