import Joi from 'joi';
import type { AddressRange } from '../address-range.ts';
import { isObject } from '../schema-validation.ts';
import type { Deletions } from './deletions.ts';
import type { Host, HostInput } from './host.ts';
import type { ImportCounts } from './import-counts.ts';
import type { Note, Service, Session, Vuln, Workspace, WorkspaceNote, WorkspaceVuln } from './resources.ts';
import type { ExtraField, FilterName, Filters, Selection } from './selection.ts';

/** How rows are read, looked up and counted. */
export interface ReadOptions {
    /** Ends it early; the store frees what it holds. Take it from the options when it is needed: it may be made then. */
    readonly signal?: AbortSignal;
}

/**
 * Rows of one resource, found below their parents. `parents` holds the ids of the path from the outside in: none for
 * workspaces, `[workspaceId]` for hosts, `[workspaceId, hostId]` for services. A row is seen only below its own parents.
 */
export interface Collection<Row extends { readonly id: number }> {
    /**
     * All rows below `parents` in ascending id, in batches of a size that suits the store (some hundred rows). Parents that
     * do not exist have no rows. Ending the iteration early frees everything it held.
     *
     * @throws ScanwireError `UNAVAILABLE` when the store cannot be reached.
     */
    list(parents: readonly number[], options?: ReadOptions): AsyncIterable<readonly Row[]>;

    /**
     * The same rows as `list` gives, as the text of the answer: objects of JSON with commas between them, the fields in the order of the
     * resource's schema, times as `2026-11-21T09:30:00+00:00`. Faster where the store has or makes such text anyway, and faster still where it
     * has its bytes, in UTF-8. A batch that it has no text for are the rows themselves.
     */
    listText?(parents: readonly number[], options?: ReadOptions): AsyncIterable<string | Uint8Array | readonly Row[]>;

    /** The row, or null when it does not exist below exactly these parents. It may reject once the signal aborts. */
    get(parents: readonly number[], id: number, options?: ReadOptions): Promise<Row | null>;

    /** The filters that `select` and `count` know; none without it. They are asked for no others. */
    readonly filters?: readonly FilterName[];

    /** The fields that `select` adds to rows on request; none without it. It is asked for no others. */
    readonly extras?: readonly ExtraField[];

    /** Whether `select` knows `hosts`. It is asked for them by no others. */
    readonly selectsHosts?: true;

    /**
     * A part of what `list` gives, in batches as well. Ids and times are compared as they go out, times in whole milliseconds: a row
     * whose `updated_at` is finer would be behind itself. Without it a client can neither page nor filter.
     */
    select?(parents: readonly number[], selection: Selection, options?: ReadOptions): AsyncIterable<readonly Row[]>;

    /** How many rows below `parents` fulfil the filters. Without it nobody is told. */
    count?(parents: readonly number[], where: Filters, options?: ReadOptions): Promise<number>;

    /** What was deleted. Without it nobody is told. */
    readonly deletions?: Deletions;
}

/** A collection of which parts and counts can be asked for. */
export type SelectableCollection<Row extends { readonly id: number }> = Collection<Row> &
    Required<Pick<Collection<Row>, 'filters' | 'select' | 'count'>>;

/** What `rest-api-v2` reads. A store without one of the optional collections has no route for it. */
export interface InventoryStore {
    readonly workspaces: Collection<Workspace>;
    readonly hosts: Collection<Host>;
    readonly services?: Collection<Service>;
    readonly notes?: Collection<Note>;
    readonly sessions?: Collection<Session>;
    readonly vulns?: Collection<Vuln>;
    /** All that a host has, `[workspaceId, hostId]`: those of its services, and those of the host as a whole. */
    readonly hostVulns?: Collection<WorkspaceVuln>;
    /** What is below all hosts of a workspace, `[workspaceId]`, and the notes on none. */
    readonly workspaceServices?: Collection<Service>;
    readonly workspaceNotes?: Collection<WorkspaceNote>;
    readonly workspaceSessions?: Collection<Session>;
    readonly workspaceVulns?: Collection<WorkspaceVuln>;
}

/**
 * How far an import has come after it has read everything: it stores the hosts, compares those that were there before with them where it replaces, then
 * shows these as they are now, or undoes all of it where it is a dry run.
 */
export interface ImportProgress {
    readonly phase: 'storing' | 'comparing' | 'showing' | 'undoing';
    /** How many hosts this phase is done with, of how many. */
    readonly done: number;
    readonly total: number;
    /**
     * How many hosts the phases are going to have that follow, as far as what is done lets expect; one that is not named here does not come. Absent where the
     * store cannot tell, or has nothing new to tell.
     */
    readonly ahead?: Readonly<Partial<Record<'comparing' | 'showing' | 'undoing', number>>> | undefined;
}

/** Where the hosts of an import come from. */
export interface ImportOrigin {
    /** Stands for what is read, and how: the same hosts come from it whenever it is the same. For example the digest of a file. */
    readonly id: string;
    /**
     * Asked where the hosts are not: resolves when all has come that `id` stands for, and rejects, with what the import fails with then, where it has not.
     */
    arrived(): Promise<void>;
    /** Whether it was said, while the hosts were read, what must be said each time. Such an import is not remembered. */
    hasWarned?(): boolean;
}

/** How an import is made and followed. */
export interface ImportOptions {
    /** Called once in a while; a store that is done at once need not. */
    readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
    /** Told, as a sentence, what went wrong without making the import fail. The process warns of it by default. */
    readonly onWarning?: ((message: string) => void) | undefined;
    /**
     * The hosts are the whole workspace: those that it holds and none of these names are removed, with all that is below them, and so are
     * the services, notes and vulnerabilities that are not named of hosts that are; but for notes and vulnerabilities that no import has
     * made. Only where the store {@link InventoryWriter.replaces}.
     */
    readonly replace?: boolean | undefined;
    /** Stores nothing, and says what would be. Only where the store {@link InventoryWriter.dryRuns}. */
    readonly dryRun?: boolean | undefined;
    /**
     * By which a store that {@link InventoryWriter.remembersImports} knows that the same was imported before. Where nothing that decides what comes of it has changed since,
     * the hosts are not iterated: all that they name is unchanged, and they count as seen.
     */
    readonly origin?: ImportOrigin | undefined;
}

/** What an import did. A workspace that a dry run would make is none afterwards, whatever its id. */
export interface ImportSummary {
    readonly workspace: Workspace;
    readonly hosts: ImportCounts;
    readonly services: ImportCounts;
    /** Only of a store that {@link InventoryWriter.keepsFindings}. */
    readonly notes?: ImportCounts;
    /** The same. */
    readonly vulns?: ImportCounts;
}

/** Which hosts are removed. */
export interface ExpireOptions {
    /** Those that no import has seen since. */
    readonly notSeenSince: Date;
    /** Removes none. */
    readonly dryRun?: boolean;
}

/** Which hosts are removed. */
export interface RemoveHostsOptions {
    /** Those that have one of these; all without it. */
    readonly address?: AddressRange;
    /** Removes none. */
    readonly dryRun?: boolean;
}

/** How many hosts were removed, or would be. */
export interface RemovedHosts {
    readonly hosts: number;
}

/** How many hosts were moved. */
export interface MovedHosts {
    readonly hosts: number;
}

/** What of a workspace can be changed; what is left out stays as it is. */
export type WorkspaceChanges = Partial<Pick<Workspace, 'boundary' | 'limit_to_network'>>;

/** What the import writes through. */
export interface InventoryWriter {
    /** Makes the workspace unless one of that name exists; either way it is returned. */
    ensureWorkspace(name: string): Promise<Workspace>;

    /**
     * Stores all hosts in the workspace of that name (made when missing), or, when anything fails, the iteration of `hosts`
     * included, none of them. A host whose address the workspace already holds is updated with the fields that are there;
     * a service is found by its port and protocol. What is named several times is stored as all that is said of it together. Counters are kept right in the same transaction. What is said of a host or a
     * service and is so already writes nothing and moves no `updated_at`; a service, a note or a vulnerability more moves that of its host too.
     */
    importHosts(workspaceName: string, hosts: AsyncIterable<HostInput>, options?: ImportOptions): Promise<ImportSummary>;

    /** Whether `importHosts` knows `replace`. It is asked for it by no others. */
    readonly replaces?: true;

    /** Whether `importHosts` knows `dryRun`. It is asked for it by no others. */
    readonly dryRuns?: true;

    /**
     * Whether `importHosts` leaves out, as `refused`, the hosts that are outside of the boundary of a workspace with `limit_to_network`. Of one that
     * is set while the hosts are read, too, unless the import is refused as a `CONFLICT`.
     */
    readonly keepsBoundaries?: true;

    /** Whether `importHosts` knows `origin`. Others iterate the hosts each time. */
    readonly remembersImports?: true;

    /** Whether `importHosts` stores notes and vulnerabilities. Without it they are left out. */
    readonly keepsFindings?: true;

    /**
     * Removes the hosts of the workspace of that name that no import has seen for a while, with all that is below them.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace.
     */
    expireHosts?(workspaceName: string, options: ExpireOptions): Promise<RemovedHosts>;

    /**
     * Removes hosts of the workspace of that name, with all that is below them.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace.
     */
    removeHosts?(workspaceName: string, options: RemoveHostsOptions): Promise<RemovedHosts>;

    /**
     * Removes the workspace of that name with all that is in it. One that is cut short leaves the workspace, with its hosts or
     * what is left of them, and is to be called again.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace.
     */
    removeWorkspace?(name: string): Promise<RemovedHosts>;

    /**
     * Moves the hosts of these ids into the workspace of that name with all that is below them, or, when one may not, none of them. They
     * keep their ids; who reads what has changed in a workspace sees them, and what is below them, as changed in the new one.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace or host; `CONFLICT` that names the addresses that the workspace holds already
     *     or that its boundary leaves out.
     */
    moveHosts?(ids: readonly number[], to: string): Promise<MovedHosts>;

    /**
     * Changes what is said of the workspace of that name. Hosts that it holds already stay, wherever they are.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace, `INVALID_INPUT` for a boundary that is none.
     */
    updateWorkspace?(name: string, changes: WorkspaceChanges): Promise<Workspace>;

    /**
     * Gives the workspace of that name another one. It keeps its id, and all that is in it; what names it from now on says `to`.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace, `INVALID_INPUT` for a name that is none; `CONFLICT`, field `to`, where another
     *     workspace has it.
     */
    renameWorkspace?(name: string, to: string): Promise<Workspace>;
}

/** Its collections, those first that every store has. */
const COLLECTIONS: readonly (keyof InventoryStore)[] = [
    'workspaces',
    'hosts',
    'services',
    'notes',
    'sessions',
    'vulns',
    'hostVulns',
    'workspaceServices',
    'workspaceNotes',
    'workspaceSessions',
    'workspaceVulns',
];

/** Joi schema of a store that has these collections, and no other that is none. The store passes through as it is, never cloned. */
export function inventorySchema(...needed: readonly (keyof InventoryStore)[]): Joi.ObjectSchema<InventoryStore> {
    return Joi.object<InventoryStore>()
        .unknown()
        .custom((store: InventoryStore, helpers) => {
            const wrong = COLLECTIONS.find((name) => (needed.includes(name) || store[name] !== undefined) && !isCollection(store[name]));
            return wrong === undefined
                ? store
                : helpers.message({ custom: `{{#label}} must have the collection ${wrong} with the functions list and get` });
        });
}

function isCollection(value: unknown): boolean {
    return isObject(value) && typeof value.list === 'function' && typeof value.get === 'function';
}
