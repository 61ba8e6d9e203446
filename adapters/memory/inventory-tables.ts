import type { Host } from '../../lib/inventory/host.ts';
import type { Note, Service, Session, Vuln } from '../../lib/inventory/resources.ts';
import type { Workspace } from '../../lib/inventory/workspace.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { type Table, table } from './table.ts';

export interface InventoryTables {
    readonly workspaces: Table<Workspace>;
    readonly hosts: Table<Host>;
    readonly services: Table<Service>;
    readonly notes: Table<Note>;
    readonly sessions: Table<Session>;
    readonly vulns: Table<Vuln>;
}

export function inventoryTables(): InventoryTables {
    return { workspaces: table(), hosts: table(), services: table(), notes: table(), sessions: table(), vulns: table() };
}

/** Counts one more child of a host. */
export function count(hosts: Table<Host>, hostId: number, counter: 'note_count' | 'service_count' | 'vuln_count'): void {
    const host = existing(hosts.get(hostId), 'host');
    hosts.replace({ ...host, [counter]: host[counter] + 1 });
}

/** @throws ScanwireError `NOT_FOUND` without the row. */
export function existing<Row>(row: Row | undefined, what: string): Row {
    if (row === undefined) {
        throw new ScanwireError('NOT_FOUND', `Unknown ${what}`);
    }

    return row;
}

export function times(now: Date): { created_at: Date; updated_at: Date } {
    return { created_at: now, updated_at: now };
}
