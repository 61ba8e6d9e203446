export { type AddressRange, addressRange } from '../address-range.ts';
export { type CanonicalAddress, canonicalAddress } from '../addresses.ts';
export { type Problem, ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { type TimestampFormat, timestampFormat } from '../timestamp.ts';
export type { ClosedPorts, PortRange } from './closed-ports.ts';
export { type Deletion, type DeletionSelection, type Deletions, deletionSchema } from './deletions.ts';
export { type Export, type ExportFormat, type ExportOptions, type ExportQuery, exportWorkspace } from './export.ts';
export type { Findings, NoteInput, VulnInput } from './findings.ts';
export {
    type ArchFields,
    type Host,
    type HostInput,
    type HostState,
    hostFields,
    hostSchema,
    KNOWN_ARCHES,
    type NewHost,
    newHost,
    normaliseArch,
    type ServiceInput,
} from './host.ts';
export { normaliseHost } from './host-input.ts';
export type { ImportCounts } from './import-counts.ts';
export {
    type GivenRow,
    type InventoryFunctions,
    type Page,
    type ReadOnlyInventoryOptions,
    type ReadRows,
    readOnlyInventory,
} from './read-only-inventory.ts';
export {
    DEFAULT_WORKSPACE,
    type Note,
    noteSchema,
    type Service,
    type Session,
    serviceSchema,
    sessionSchema,
    type Vuln,
    vulnSchema,
    type Workspace,
    type WorkspaceNote,
    type WorkspaceVuln,
    workspaceNoteSchema,
    workspaceSchema,
    workspaceVulnSchema,
} from './resources.ts';
export {
    type ExtraField,
    FILTERS,
    type FilterName,
    type Filters,
    type Position,
    type Selection,
} from './selection.ts';
export type {
    Collection,
    ExpireOptions,
    ImportSummary,
    InventoryStore,
    InventoryWriter,
    MovedHosts,
    ReadOptions,
    RemovedHosts,
    RemoveHostsOptions,
    WorkspaceChanges,
} from './store.ts';
