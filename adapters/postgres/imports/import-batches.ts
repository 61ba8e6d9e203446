import { mergedRanges } from '../../../lib/inventory/closed-ports.ts';
import { type Findings, indexedAmongAlike } from '../../../lib/inventory/findings.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import type { Executor } from '../../../lib/transaction.ts';

/** So many make a short transaction also on the embedded database, where everybody waits for it. */
const HOSTS_PER_BATCH = 150;
const SERVICES_PER_BATCH = 500;

/** A batch that was read aside. */
export interface ReadBatch {
    /** Its number of hosts. */
    readonly size: number;
    /** Whether it has notes or vulnerabilities. */
    readonly hasFindings: boolean;
}

/** Sets the hosts of an import aside in the database, in batches, before any is imported. */
export async function readAside(pool: Executor, importId: string, hosts: AsyncIterable<HostInput>): Promise<readonly ReadBatch[]> {
    const batches: ReadBatch[] = [];
    for await (const batch of inBatches(hosts)) {
        const findings = findingsAside(batch);
        const sql = `insert into scanwire.import_batches (import_id, seq, created_at, hosts, findings)
            values ($1, $2, scanwire.now(), $3, $4)`;
        await pool.query(sql, [importId, batches.length, JSON.stringify(batch.map(aside)), findings && JSON.stringify(findings)]);
        batches.push({ size: batch.length, hasFindings: findings !== null });
    }

    return batches;
}

/**
 * A host as it is read aside, with its closed ports as bounds of ranges: where they begin and where they have ended, in turn; and with the
 * numbers of its notes and vulnerabilities.
 */
function aside({ closed_ports, notes, vulns, ...host }: HostInput): object {
    const bounds = Object.entries(closed_ports ?? {}).map(([proto, ranges]) => [
        proto,
        `{${mergedRanges(ranges).flatMap(([first, last]) => [first, last + 1])}}`,
    ]);
    return { ...host, notes: notes?.length, vulns: vulns?.length, ...(bounds.length > 0 && { closed: Object.fromEntries(bounds) }) };
}

/**
 * The notes and vulnerabilities of the hosts of a batch, as they are read aside: which host they are of, counted from 1, their index, which the rows of
 * imports under way call `place`, among those with the same service and key, and the fields that are given. Null where there are none.
 */
function findingsAside(hosts: readonly HostInput[]): object | null {
    const notes = hosts.flatMap(({ notes: given = [] }, index) =>
        indexedAmongAlike(given, ({ ntype }) => ntype).map(([{ port, proto, ntype: key, ...fields }, place]) => {
            return { at: index + 1, place, port, proto, key, fields };
        }),
    );
    const vulns = hosts.flatMap(({ vulns: given = [] }, index) =>
        indexedAmongAlike(given, ({ name }) => name).map(([{ port, proto, name: key, ...fields }, place]) => {
            return { at: index + 1, place, port, proto, key, fields };
        }),
    );
    return notes.length + vulns.length === 0 ? null : { notes, vulns };
}

/** How much the notes and vulnerabilities of a host are to store, each as a service, and as many as its text has pages. */
function weightOf({ notes = [], vulns = [] }: Findings): number {
    const page = 4096;
    const noted = notes.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
    const told = vulns.reduce((sum, { info }) => sum + (info?.length ?? 0), 0);
    return notes.length + vulns.length + Math.ceil((noted + told) / page);
}

/** No address is twice in a batch, since one statement stores each host once. */
async function* inBatches(hosts: AsyncIterable<HostInput>): AsyncGenerator<readonly HostInput[]> {
    let batch = new Map<string, HostInput>();
    let services = 0;
    for await (const host of hosts) {
        const weight = (host.services?.length ?? 0) + weightOf(host);
        if (batch.size >= HOSTS_PER_BATCH || services >= SERVICES_PER_BATCH || batch.has(host.address)) {
            yield [...batch.values()];
            batch = new Map();
            services = 0;
        }

        batch.set(host.address, host);
        services += weight;
    }

    if (batch.size > 0) {
        yield [...batch.values()];
    }
}

/** Batches of imports that were cut off (older than a day) go with them, a few at a time. The outcome of the import does not depend on this. */
export async function removeAside(pool: Executor, importId: string): Promise<void> {
    const sql = `delete from scanwire.import_batches where (import_id, seq) in (
        select import_id, seq from scanwire.import_batches where import_id = $1 or created_at < (select scanwire.now()) - interval '1 day' limit 50
    )`;
    try {
        while (((await pool.query(sql, [importId])).rowCount ?? 0) > 0);
    } catch {
        // The next import tries again.
    }
}

/**
 * The hosts of a batch in their order. Each is looked up as the next in the order of the unique index: for equality the planner, as long as
 * it has not heard of new rows, takes the index of listings as well and reads all hosts for each (measured: 0.5 s for a batch). Here and in
 * what is staged `offset 0` keeps an expression over JSON from being written out, and parsed, wherever its name stands.
 */
export const INPUT: string = `input as materialized (
    select given.*, host.id as host_id, host.generation, host.updated_at
    from (
        select host, (host ->> 'address')::inet as address, coalesce((host ->> 'if_known')::boolean, false) as if_known, index
        from scanwire.import_batches, json_array_elements(hosts) with ordinality as element (host, index)
        where import_id = $1 and seq = $2 and index > $4 and index <= $6 offset 0
    ) given
    left join lateral (
        select id, workspace_id, address, generation, updated_at from scanwire.hosts
        where (workspace_id, address) >= ($3, given.address) order by workspace_id, address limit 1
    ) host on host.workspace_id = $3 and host.address = given.address
    where host.id is not null or not given.if_known
)`;

/** The services that `input` gives, one by one (`told`), perhaps with name and info (`named`), and those that it says are closed with others. */
export const GIVEN_SERVICES: string = `(
    select true as told, element.name is not null as named, element.*
    from rows from (json_to_recordset(coalesce(input.host -> 'services', '[]')) as (port integer, proto text, state text, name text, info text))
        with ordinality as element (port, proto, state, name, info, index)
    union all
    select false, false, services.port, services.proto, 'closed', null, null, 0
    from (select proto, bounds::integer[] as bounds from json_each_text(input.host -> 'closed') as element (proto, bounds) offset 0) closed
    join scanwire.services on services.host_id = input.host_id and services.proto = closed.proto
        and width_bucket(services.port, closed.bounds) % 2 = 1
) element`;
