export { type CanonicalAddress, canonicalAddress } from './address.ts';
export { type ArchFields, KNOWN_ARCHES, normaliseArch } from './arch.ts';
export { type Host, type HostInput, type HostState, hostSchema, type ServiceInput } from './host.ts';
export { normaliseHost } from './host-input.ts';
export { hostFields, type NewHost, newHost } from './new-host.ts';
export {
    type Note,
    noteSchema,
    type Service,
    type Session,
    serviceSchema,
    sessionSchema,
    type Vuln,
    vulnSchema,
} from './resources.ts';
export type { Collection, ImportSummary, InventoryStore, InventoryWriter, ReadOptions } from './store.ts';
export { type TimestampFormat, timestampFormat } from './timestamp.ts';
export { DEFAULT_WORKSPACE, type Workspace, workspaceSchema } from './workspace.ts';
