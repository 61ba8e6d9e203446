import type { HostInput } from '../../../lib/inventory/host.ts';
import type { Merging } from '../../../lib/inventory/mentions.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { batchNumbers } from './batch-numbers.ts';
import { weightOf } from './host-pieces.ts';
import { type ReadBatch, SERVICES_PER_BATCH, setAside, takeBack } from './import-batches.ts';

/** So many make a short transaction also on the embedded database, where everybody waits for it. */
const HOSTS_PER_BATCH = 150;
/**
 * How much waits in memory to be merged with what is aside: each time every batch that it is of is read and written again. In the order of a scanner that
 * asks its addresses at random it is of all batches, so that of each there has to be some.
 */
const WAITING: Waiting = { least: 20_000, ofEach: 100, most: 200_000 };

interface Waiting {
    readonly least: number;
    readonly ofEach: number;
    readonly most: number;
}

/**
 * Sets the hosts of an import aside in the database, in batches, before any is imported. What is said of an address that comes again is merged
 * with what was said before, so that none is in two batches. While the database has a batch to store, the next one is read.
 *
 * @throws Whatever the iteration throws, once the database is done; what the database throws at once, however long the iteration takes.
 */
export async function readAside(
    pool: Executor,
    importId: string,
    hosts: AsyncIterable<HostInput>,
    { merged }: Pick<Merging, 'merged'>,
    waiting: Waiting = WAITING,
): Promise<readonly ReadBatch[]> {
    const batches = asideBatches(pool, importId, merged);
    const reading = partsOf(hosts, batches.has, () => Math.min(Math.max(waiting.least, waiting.ofEach * batches.count()), waiting.most));
    let storing = Promise.resolve();
    try {
        for (;;) {
            const [part] = await Promise.all([reading.next(), storing]);
            if (part.done === true) {
                return batches.inOrder();
            }

            const { mentions, again } = part.value;
            storing = again ? batches.mergeInto(mentions) : batches.store(mentions);
        }
    } finally {
        await storing.catch(() => {});
        // Not waited for: a source that says nothing more would be waited for without an end.
        reading.return().catch(() => {});
    }
}

/** What is said of addresses that are not aside yet, or `again` of some that are: so much that it is time to store it. */
interface Part {
    readonly mentions: Mentions;
    readonly again: boolean;
}

/**
 * @param isAside Whether an address was in a part before.
 * @param mostWaiting How much of those waits at most.
 */
async function* partsOf(
    hosts: AsyncIterable<HostInput>,
    isAside: (address: string) => boolean,
    mostWaiting: () => number,
): AsyncGenerator<Part, void, undefined> {
    let current = mentionsOf([]);
    let waiting = mentionsOf([]);
    for await (const host of hosts) {
        if (isFull(current, host)) {
            yield { mentions: current, again: false };
            current = mentionsOf([]);
        }

        add(isAside(host.address) ? waiting : current, host);
        if (waiting.weight > mostWaiting()) {
            yield { mentions: waiting, again: true };
            waiting = mentionsOf([]);
        }
    }

    yield { mentions: current, again: false };
    yield { mentions: waiting, again: true };
}

/** The batches that are aside. */
function asideBatches(pool: Executor, importId: string, merged: Merging['merged']) {
    /** Of one that was read again, the numbers of those that it has become. */
    const batches: (ReadBatch | readonly number[])[] = [];
    const first: number[] = [];
    const numbers = batchNumbers();
    let seq = 0;

    async function store({ byAddress }: Mentions): Promise<readonly number[]> {
        if (byAddress.size === 0) {
            return [];
        }

        // Before anything is waited for: what is said of these addresses from now on is said again.
        const number = batches.push([]) - 1;
        for (const address of byAddress.keys()) {
            numbers.set(address, number);
        }

        const batch = await setAside(pool, importId, seq, [...byAddress.values()].map(merged));
        seq += batch.pieces;
        batches[number] = batch;
        return [number];
    }

    async function mergeIntoOne(number: number, later: readonly HostInput[]): Promise<void> {
        const known = await takeBack(pool, importId, batches[number] as ReadBatch);
        const become: number[] = [];
        let current = mentionsOf([]);
        for (const mentions of mentionsOf([...known, ...later]).byAddress.values()) {
            const host = merged(mentions);
            if (isFull(current, host)) {
                become.push(...(await store(current)));
                current = mentionsOf([]);
            }
            add(current, host);
        }
        become.push(...(await store(current)));
        batches[number] = become;
    }

    function becomeOf(number: number): readonly ReadBatch[] {
        const batch = batches[number] ?? [];
        return 'seq' in batch ? [batch] : batch.flatMap(becomeOf);
    }

    return {
        async store(some: Mentions): Promise<void> {
            first.push(...(await store(some)));
        },

        has: (address: string): boolean => numbers.get(address) !== undefined,
        /** How many there were before any of them was read again. */
        count: (): number => first.length,

        /** What is said again of addresses that are aside. */
        async mergeInto({ byAddress }: Mentions): Promise<void> {
            const byBatch = new Map<number, HostInput[]>();
            for (const [address, mentions] of byAddress) {
                const number = numbers.get(address) ?? 0;
                byBatch.set(number, [...(byBatch.get(number) ?? []), ...mentions]);
            }
            for (const [number, later] of byBatch) {
                await mergeIntoOne(number, later);
            }
        },

        /** In the order in which their hosts were named first. */
        inOrder: (): readonly ReadBatch[] => first.flatMap(becomeOf),
    };
}

/** What is said of some addresses. */
interface Mentions {
    readonly byAddress: Map<string, HostInput[]>;
    weight: number;
}

function mentionsOf(hosts: readonly HostInput[]): Mentions {
    const mentions = { byAddress: new Map<string, HostInput[]>(), weight: 0 };
    for (const host of hosts) {
        add(mentions, host);
    }
    return mentions;
}

function add(mentions: Mentions, host: HostInput): void {
    const before = mentions.byAddress.get(host.address);
    if (before === undefined) {
        mentions.byAddress.set(host.address, [host]);
        mentions.weight += weightOf(host);
    } else {
        before.push(host);
        mentions.weight += 1 + weightOf(host);
    }
}

/** Whether a batch takes no more. A host that alone has too much for a short transaction has its own. */
function isFull({ byAddress, weight }: Mentions, host: HostInput): boolean {
    return (
        weight >= SERVICES_PER_BATCH ||
        (byAddress.size > 0 && weightOf(host) > SERVICES_PER_BATCH) ||
        (byAddress.size >= HOSTS_PER_BATCH && !byAddress.has(host.address))
    );
}
