import { type AddressRange, addressesIn } from '../../lib/address-range.ts';

/** So few are looked up each by its address, and sorted: a few milliseconds at most. */
const FEW = 2 ** 12;
/** Beyond so many nearly all rows are meant, or there are too many blocks: rows are read in the order of their ids until there are enough. */
const MOST = 2 ** 24;

/** The hosts of some addresses. */
export interface HostsByAddress {
    readonly from: string;
    /** What rows must fulfil besides. */
    readonly where: readonly string[];
    readonly range: AddressRange;
    /** The parameter with the id behind which rows are wanted. */
    readonly after: string;
    readonly limit: number;
    /** Whether the table is ours, with its index of blocks. */
    readonly hasBlocks: boolean;
    /** Makes a parameter of a value. */
    readonly place: (value: unknown) => string;
}

/**
 * Selects the ids of a page, in a way that the planner does not find: it takes addresses and ids for independent of each other, while most
 * networks were scanned in the order of their addresses. Null where it does find one.
 */
export function idsByAddress(wanted: HostsByAddress): string | null {
    const size = addressesIn(wanted.range);
    const isFour = !wanted.range.first.includes(':');
    return size <= FEW ? idsOfFew(wanted) : isFour && wanted.hasBlocks && size <= MOST ? idsOfBlocks(wanted) : null;
}

/** Not by the index of ids, which would be read as a whole: hence the `+ 0`. */
function idsOfFew({ from, where, range, after, limit, place }: HostsByAddress): string {
    const all = [...where, `rows.address between ${place(range.first)}::inet and ${place(range.last)}::inet`, `rows.id + 0 > ${after}`];
    return `select rows.id from ${from} where ${all.join(' and ')} order by rows.id + 0 limit ${limit}`;
}

/**
 * The first rows of each block that there is in the range; which there are is looked up from one to the next. Of most blocks all addresses
 * are in the range: the planner must not take that condition for one that few rows fulfil, hence the `case`. Of an array it expects few
 * elements, of what is recursive a hundred rows: for that much work it would compile the statement first, which takes a tenth of a second.
 */
function idsOfBlocks({ from, where, range, after, limit, place }: HostsByAddress): string {
    const [first, last] = [place(range.first), place(range.last)];
    const inRange = `case when rows.address between ${first}::inet and ${last}::inet then true else false end`;
    const block = 'scanwire.address_block(rows.address)';
    const next = (condition: string): string => `select ${block} as block from scanwire.hosts rows
        where rows.workspace_id = $1 and ${block} ${condition} and ${block} <= scanwire.address_block(${last}::inet) order by ${block} limit 1`;
    const known = `with recursive blocks as (
        (${next(`>= scanwire.address_block(${first}::inet)`)})
        union all
        select (${next('> blocks.block')}) from blocks where blocks.block is not null
    ) select block from blocks where block is not null`;
    return `select found.id from unnest(array(${known})) blocks (block) cross join lateral (
        select rows.id from ${from} where ${[...where, inRange, `${block} = blocks.block`, `rows.id > ${after}`].join(' and ')}
        order by rows.id limit ${limit}
    ) found order by found.id limit ${limit}`;
}
