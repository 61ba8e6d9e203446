import { type AddressRange, blocksIn } from '../../../lib/address-range.ts';

/** Up to so many hosts are looked up by their addresses and then sorted, which takes a few milliseconds at most. */
const FEW = 2 ** 12;
/** Up to so many blocks, the first hosts of each are read and sorted. With more blocks PostgreSQL would compile the statement first, which takes a tenth of a second. */
const FEW_BLOCKS = 4;
/** A range of more blocks, larger than a /8 that begins anywhere, has nearly all hosts: the planner reads these in the order of their ids until there are enough. */
const MAX_BLOCKS = 257;

/** What the addresses of a block have in common, as the function of the migration `0069-address-blocks` says; and all of an address. */
const BYTES = { ofBlock: { 4: 2, 6: 6 }, ofAddress: 16 } as const;
const BLOCK = 'scanwire.address_block(rows.address)';

/** The hosts of some addresses, or the rows below them. */
export interface HostsByAddress {
    readonly from: string;
    /** Whether the rows are below `hosts`. */
    readonly byHost: boolean;
    /** What rows must fulfil besides. */
    readonly where: readonly string[];
    readonly range: AddressRange;
    /** The parameter with the id behind which rows are wanted. */
    readonly after: string;
    readonly limit: number;
    /** Whether the table is ours, with its index of blocks. */
    readonly hasBlocks: boolean;
    /** Makes a parameter of a value. */
    readonly parameter: (value: unknown) => string;
}

/** The same, with the parameters of the first address and the last. */
interface HostsBetween extends Omit<HostsByAddress, 'range' | 'parameter'> {
    readonly first: string;
    readonly last: string;
}

/**
 * Selects the ids of a page, in a way that the planner does not find: it takes addresses and ids for independent of each other, while most
 * networks were scanned in the order of their addresses. Null where it does find one.
 */
export function idsByAddress({ range, parameter, ...others }: HostsByAddress): string | null {
    const way = others.byHost ? wayBelow(range, others.hasBlocks) : wayTo(range, others.hasBlocks);
    return (
        way?.({ ...others, first: `${parameter(range.first)}::inet`, last: `${parameter(range.last)}::inet` }, blocksOfRange(range)) ?? null
    );
}

/** Whether a page reads no more than the hosts of a few blocks. Otherwise it reads in the order of ids, and may pass over any number of hosts. */
export function isLookedUp(range: AddressRange, hasBlocks: boolean): boolean {
    const way = wayTo(range, hasBlocks);
    return way === idsOfFew || way === idsOfBlocks;
}

/** Whether there are so few addresses that all of their hosts are read at once. */
export function areFew(range: AddressRange): boolean {
    return blocksIn(range, BYTES.ofAddress) <= FEW;
}

function wayTo(range: AddressRange, hasBlocks: boolean): ((wanted: HostsBetween, blocks: number) => string) | null {
    const blocks = blocksOfRange(range);
    if (blocks > MAX_BLOCKS) {
        return null;
    }
    if (areFew(range)) {
        return idsOfFew;
    }
    if (!hasBlocks) {
        return null;
    }
    if (versionOf(range) === 6) {
        return idsOfFewOrFromFirst;
    }
    return blocks <= FEW_BLOCKS ? idsOfBlocks : idsFromFirst;
}

function wayBelow(range: AddressRange, hasBlocks: boolean): typeof idsOfFew | null {
    if (areFew(range)) {
        return idsOfFew;
    }
    return hasBlocks ? idsBelowFewOrAny : null;
}

function blocksOfRange(range: AddressRange): number {
    return blocksIn(range, BYTES.ofBlock[versionOf(range)]);
}

function versionOf({ first }: AddressRange): 4 | 6 {
    return first.includes(':') ? 6 : 4;
}

/** The `+ 0` keeps the planner from the index of ids, which it would read as a whole. */
function idsOfFew({ from, byHost, where, first, last, after, limit }: HostsBetween): string {
    const all = [...where, `${byHost ? 'hosts' : 'rows'}.address between ${first} and ${last}`, `rows.id + 0 > ${after}`];
    return `select rows.id from ${from} where ${all.join(' and ')} order by rows.id + 0 limit ${limit}`;
}

/** A network of IPv6 has more addresses than there are hosts anywhere, but usually few hosts: they are counted before the way is chosen. */
function idsOfFewOrFromFirst(wanted: HostsBetween): string {
    return idsOfFewOr(idsFromFirst(wanted), wanted);
}

/** What is below many hosts is read in the order of ids until there is enough. */
function idsBelowFewOrAny(wanted: HostsBetween): string {
    const { from, where, after, limit } = wanted;
    const all = [...where, inRange(wanted), `rows.id > ${after}`];
    return idsOfFewOr(`select rows.id from ${from} where ${all.join(' and ')} order by rows.id limit ${limit}`, wanted);
}

function idsOfFewOr(others: string, wanted: HostsBetween): string {
    const counted = `select count(*) from (
        select from scanwire.hosts rows where rows.workspace_id = $1 and rows.address between ${wanted.first} and ${wanted.last}
        order by rows.address limit ${FEW + 1}
    ) counted`;
    return `select unnest(case when (${counted}) <= ${FEW} then array(${idsOfFew(wanted)}) else array(${others}) end)`;
}

/**
 * The first rows of each block of the range that has hosts. The `limit` on the blocks tells the planner how few blocks there are. In most blocks all addresses are in
 * the range; the planner would take that condition for one that few rows fulfil, and the `case` hides it from the planner.
 */
function idsOfBlocks(wanted: HostsBetween, maxBlocks: number): string {
    const { from, where, after, limit } = wanted;
    const blocks = `(select unnest(array(${blocksOf(wanted)})) as block limit ${maxBlocks}) blocks`;
    return `select found.id from ${blocks} cross join lateral (
        select rows.id from ${from} where ${[...where, inRange(wanted), `${BLOCK} = blocks.block`, `rows.id > ${after}`].join(' and ')}
        order by rows.id limit ${limit}
    ) found order by found.id limit ${limit}`;
}

/** Reads in the order of ids until there are enough, beginning with the lowest id in any of the blocks: no host before it is in the range. */
function idsFromFirst(wanted: HostsBetween): string {
    const { from, where, after, limit } = wanted;
    const minId = `select min(firsts.id) from unnest(array(${blocksOf(wanted)})) blocks (block) cross join lateral (
        select rows.id from scanwire.hosts rows where rows.workspace_id = $1 and ${BLOCK} = blocks.block and rows.id > ${after}
        order by rows.id limit 1
    ) firsts`;
    return `select rows.id from ${from} where ${[...where, inRange(wanted), `rows.id >= (${minId})`].join(' and ')}
        order by rows.id limit ${limit}`;
}

function inRange({ byHost, first, last }: HostsBetween): string {
    return `case when ${byHost ? 'hosts' : 'rows'}.address between ${first} and ${last} then true else false end`;
}

/**
 * The blocks that there are in the range, each looked up from the one before. To be made an array: of that the planner expects few elements, of what
 * is recursive a hundred rows.
 */
function blocksOf({ first, last }: HostsBetween): string {
    const next = (condition: string): string => `select ${BLOCK} as block from scanwire.hosts rows
        where rows.workspace_id = $1 and ${BLOCK} ${condition} and ${BLOCK} <= scanwire.address_block(${last}) order by ${BLOCK} limit 1`;
    return `with recursive blocks as (
        (${next(`>= scanwire.address_block(${first})`)})
        union all
        select (${next('> blocks.block')}) from blocks where blocks.block is not null
    ) select block from blocks where block is not null`;
}
