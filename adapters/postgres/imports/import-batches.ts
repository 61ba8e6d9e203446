import { type Ticker, timer } from '../../../lib/clock.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { mergedRanges, type PortRange } from '../../../lib/inventory/closed-ports.ts';
import type { NoteInput, VulnInput } from '../../../lib/inventory/findings.ts';
import type { HostInput, ServiceInput } from '../../../lib/inventory/host.ts';
import { refuseUnstorableHosts } from '../../../lib/inventory/resources.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { MOST, MOST_OF_SLICE } from './crowded-hosts.ts';
import { type HostPiece, inPieces } from './host-pieces.ts';
import { clearedUp } from './import-lease.ts';

/** So many make a short transaction also on the embedded database, where everybody waits for it. */
export const SERVICES_PER_BATCH = 500;

/** A batch that was read aside. */
export interface ReadBatch {
    /** Its number, and that of its first piece. */
    readonly seq: number;
    /** More than one where it is one host that alone has too much for a short transaction: each has a part of what is below it. */
    readonly pieces: number;
    /** Its number of hosts. */
    readonly size: number;
    /** Whether it has notes or vulnerabilities. */
    readonly hasFindings: boolean;
}

/** Sets a batch aside in the database, from that number on. */
export async function setAside(pool: Executor, importId: string, seq: number, hosts: readonly HostInput[]): Promise<ReadBatch> {
    const pieces = inPieces(hosts, SERVICES_PER_BATCH);
    let hasFindings = false;
    for (const [index, piece] of pieces.entries()) {
        const findings = findingsAside(piece);
        const sql = `insert into scanwire.import_batches (import_id, seq, created_at, hosts, findings)
            values ($1, $2, scanwire.now(), $3, $4)`;
        const texts = [JSON.stringify(piece.map(aside)), findings && JSON.stringify(findings)];
        for (const text of texts) {
            refuseUnstorableHosts(hosts, text ?? '');
        }
        await pool.query(sql, [importId, seq + index, ...texts]);
        hasFindings ||= findings !== null;
    }
    return { seq, pieces: pieces.length, size: hosts.length, hasFindings };
}

/**
 * A host as it is read aside: what says which one it is and what is below it, each a column of {@link INPUT}, apart from its own fields. Closed ports are
 * bounds of ranges: where they begin and where they have ended, in turn; of its notes and vulnerabilities there are the numbers.
 */
interface AsideHost extends Pick<HostInput, 'address' | 'if_known'> {
    /** One at least, and one of each port. */
    readonly services?: readonly ServiceInput[];
    readonly closed?: Readonly<Record<string, string>>;
    readonly notes: number;
    readonly vulns: number;
    readonly fields: object;
}

function aside({ host, notes, vulns }: HostPiece): AsideHost {
    const { address, if_known, services = [], closed_ports = {}, ...fields } = host;
    const bounds = Object.entries(closed_ports).map(([proto, ranges]) => [
        proto,
        `{${mergedRanges(ranges).flatMap(([first, last]) => [first, last + 1])}}`,
    ]);
    return {
        address,
        ...(if_known !== undefined && { if_known }),
        ...(services.length > 0 && { services }),
        ...(bounds.length > 0 && { closed: Object.fromEntries(bounds) }),
        notes: notes.length,
        vulns: vulns.length,
        fields,
    };
}

/**
 * The notes and vulnerabilities of the hosts of a batch, as they are read aside: which host they are of, counted from 1, their index, which the rows of
 * imports under way call `place`, among those with the same service and key, and the fields that are given. Null where there are none.
 */
function findingsAside(hosts: readonly HostPiece[]): object | null {
    const notes = hosts.flatMap(({ notes: given }, index) =>
        given.map(([{ port, proto, ntype: key, ...fields }, place]) => ({ at: index + 1, place, port, proto, key, fields })),
    );
    const vulns = hosts.flatMap(({ vulns: given }, index) =>
        given.map(([{ port, proto, name: key, ...fields }, place]) => ({ at: index + 1, place, port, proto, key, fields })),
    );
    return notes.length + vulns.length === 0 ? null : { notes, vulns };
}

/** A finding as {@link findingsAside} has made it. */
interface AsideFinding {
    readonly at: number;
    readonly place: number;
    readonly port?: number;
    readonly proto?: ServiceInput['proto'];
    readonly key: string | null;
    readonly fields: object;
}

interface AsideRow {
    readonly hosts: readonly AsideHost[];
    readonly findings: { readonly notes: readonly AsideFinding[]; readonly vulns: readonly AsideFinding[] } | null;
}

/**
 * The hosts of a batch as they were given, which is aside no more.
 *
 * @throws ScanwireError `UNAVAILABLE` when the database has lost some of them.
 */
export async function takeBack(pool: Executor, importId: string, { seq, pieces }: ReadBatch): Promise<readonly HostInput[]> {
    const which = 'import_id = $1 and seq >= $2 and seq < $3';
    const values = [importId, seq, seq + pieces];
    const { rows } = await pool.query<AsideRow>(`select hosts, findings from scanwire.import_batches where ${which} order by seq`, values);
    if (rows.length !== pieces) {
        throw lost();
    }

    await pool.query(`delete from scanwire.import_batches where ${which}`, values);
    const [first = [], ...others] = rows.map(givenBy);
    // Others are parts of one host.
    return first.map((host) => ({
        ...host,
        services: [host, ...others.flat()].flatMap(({ services = [] }) => services),
        notes: [host, ...others.flat()].flatMap(({ notes = [] }) => notes),
        vulns: [host, ...others.flat()].flatMap(({ vulns = [] }) => vulns),
    }));
}

function givenBy({ hosts, findings }: AsideRow): readonly HostInput[] {
    const notes = hosts.map((): NoteInput[] => []);
    const vulns = hosts.map((): VulnInput[] => []);
    for (const { at, place: _place, key: ntype, fields, ...service } of findings?.notes ?? []) {
        notes[at - 1]?.push({ ...service, ntype, ...fields } as NoteInput);
    }
    for (const { at, place: _place, key: name, fields, ...service } of findings?.vulns ?? []) {
        vulns[at - 1]?.push({ ...service, name, ...fields } as VulnInput);
    }
    return hosts.map(({ address, if_known, services, closed, fields }, index) => {
        const ranges = Object.entries(closed ?? {}).map(([proto, bounds]) => [proto, rangesOf(bounds)]);
        return {
            address,
            ...fields,
            ...(if_known !== undefined && { if_known }),
            ...(services !== undefined && { services }),
            notes: notes[index] ?? [],
            vulns: vulns[index] ?? [],
            ...(closed !== undefined && { closed_ports: Object.fromEntries(ranges) }),
        };
    });
}

/** The ranges whose bounds {@link aside} has written. */
function rangesOf(bounds: string): readonly PortRange[] {
    const numbers: readonly number[] = JSON.parse(`[${bounds.slice(1, -1)}]`);
    return numbers.flatMap((first, index) => (index % 2 === 0 ? [[first, (numbers[index + 1] ?? 0) - 1] as const] : []));
}

/** The table is not logged: after a crash of the database, or where another server takes its place, it is empty. */
function lost(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', 'The database has lost hosts that were read, and none is stored: import them again');
}

/**
 * Removes a piece of a batch, all of which was stored by the same transaction or before it.
 *
 * @throws ScanwireError `UNAVAILABLE` when it is not aside any more, and so may not have been there to be stored.
 */
export async function removePiece(client: Executor, importId: string, seq: number): Promise<void> {
    const sql = 'delete from scanwire.import_batches where import_id = $1 and seq = $2';
    if ((await client.query(sql, [importId, seq])).rowCount !== 1) {
        throw lost();
    }
}

/** How often an import says that it is alive, in milliseconds: many times in the day after which others remove what it has aside. */
const ALIVE_EVERY = 3_600_000;

/**
 * Keeps what an import has aside from others, however long it reads or waits, until the returned function is called. They go by the age of each batch. The
 * embedded database has others waiting meanwhile, so a few at a time. What fails is done the next time.
 */
export function keepAside(pool: Executor, importId: string, tick: Ticker = timer): () => void {
    const sql = `update scanwire.import_batches set created_at = scanwire.now() where (import_id, seq) in (
        select import_id, seq from scanwire.import_batches
        where import_id = $1 and created_at < (select scanwire.now()) - interval '30 minutes' order by seq limit 50
    )`;
    const touch = async (): Promise<void> => {
        while (((await pool.query(sql, [importId])).rowCount ?? 0) > 0);
    };
    return tick(() => void clearedUp([touch]), ALIVE_EVERY);
}

/** Batches of imports that were cut off (older than a day) go with them, a few at a time. What is left the next import removes. */
export async function removeAside(pool: Executor, importId: string): Promise<void> {
    const sql = `delete from scanwire.import_batches where (import_id, seq) in (
        select import_id, seq from scanwire.import_batches where import_id = $1 or created_at < (select scanwire.now()) - interval '1 day' limit 50
    )`;
    while (((await pool.query(sql, [importId])).rowCount ?? 0) > 0);
}

/**
 * The hosts of a batch in their order, unpacked once: each operator on `json` reads all of its text again. Each is looked up as the next in the order of the
 * unique index: for equality the planner, as long as it has not heard of new rows, takes the index of listings as well and reads all hosts for each
 * (measured: 0.5 s for a batch). Here and in what is staged `offset 0` keeps an expression over JSON from being written out, and parsed, wherever its name
 * stands.
 */
export const INPUT: string = `input as materialized (
    select given.*, host.id as host_id, host.generation, host.updated_at, host.service_count
    from (
        select element.* from scanwire.import_batches cross join lateral rows from (
            json_to_recordset(hosts)
                as (address inet, if_known boolean, services json, closed json, notes integer, vulns integer, fields json)
        ) with ordinality as element (address, if_known, services, closed, notes, vulns, fields, index)
        where import_id = $1 and seq = $2 and index > $4 and index <= $6 offset 0
    ) given
    left join lateral (
        select id, workspace_id, address, generation, updated_at, service_count from scanwire.hosts
        where (workspace_id, address) >= ($3, given.address) order by workspace_id, address limit 1
    ) host on host.workspace_id = $3 and host.address = given.address
    where host.id is not null or given.if_known is not true
)`;

const OF_HOST = 'input.index as host_index, input.host_id, input.generation as host_generation, input.updated_at as host_updated_at';

/**
 * The services that the lists of ports that are closed with others speak of, of those hosts and services that conditions let in. For each list they are looked
 * up once: in a join the planner may read the list for each service.
 */
function closedServices(hosts: string, services: string): string {
    return `select ${OF_HOST}, false as told, false as named, services.port, services.proto, 'closed' as state, null as name, null as info,
            null as guessed_name, 0::bigint as index
        from input
        cross join lateral (
            select proto, bounds::integer[] as bounds from json_each_text(input.closed) as element (proto, bounds) offset 0
        ) closed
        cross join lateral (
            select port, proto from scanwire.services
            where host_id = input.host_id and proto = closed.proto and ${services} and width_bucket(port, closed.bounds) % 2 = 1 offset 0
        ) services
        where input.closed is not null and ${hosts}`;
}

/**
 * A part of a statement, the indexes of those hosts of `input` whose services that are closed with others take slices of their own: of one that had more than a
 * slice takes, and of those behind others that have as many together. The generation of the import is `$5`.
 */
export const CLOSED_APART: string = `apart as materialized (
    select index::integer from (
        select index, service_count, sum(service_count) over (order by index) as sum
        from input where closed is not null and generation < $5
    ) told
    where service_count > ${MOST} or sum > ${MOST_OF_SLICE}
)`;

/**
 * The services that `input` gives, each with its host: one by one (`told`), perhaps with name and info (`named`) or a name that is guessed, and those that it
 * says are closed with others.
 *
 * @param hosts Of which hosts.
 * @param apart An array of the indexes of hosts without those that are closed with others.
 */
export function givenServices(hosts: string, apart: string): string {
    return `(
        select ${OF_HOST}, true as told, element.name is not null as named, element.*
        from input cross join lateral rows from (
            json_to_recordset(input.services) as (port integer, proto text, state text, name text, info text, guessed_name text)
        ) with ordinality as element (port, proto, state, name, info, guessed_name, index)
        where ${hosts}
        union all
        ${closedServices(`${hosts} and input.index <> all (${apart})`, 'true')}
    )`;
}

/** Of such a host of `input`, those services that are closed with others, behind a port and up to another. */
export function closedBetween(behind: string, until: string): string {
    return `(${closedServices('true', `port > ${behind} and port <= ${until}`)})`;
}

/** The port of the only host of `input`, behind the port `$7`, up to which there are as many services as a slice takes; none where there are fewer. */
export const CLOSED_UNTIL: string = `with ${INPUT}
select services.port from input cross join lateral (
    select port from scanwire.services where host_id = input.host_id and port > $7 order by port offset ${MOST - 1} limit 1
) services
where input.generation <= $5`;

/**
 * The service of a host by its port, if it has one, looked up as hosts are in {@link INPUT}: for equality the planner may take another index of the host's
 * services, and reads all of them for each. Of none there is nothing to read: for no port, every service of the host would be.
 */
export function serviceOf(host: string, given: string): string {
    return `(
        select next.* from (
            select * from scanwire.services
            where ${given}.port is not null and (host_id, port, proto) >= (${host}.host_id, ${given}.port, ${given}.proto)
            order by host_id, port, proto limit 1
        ) next
        where next.host_id = ${host}.host_id and next.port = ${given}.port and next.proto = ${given}.proto
    )`;
}
