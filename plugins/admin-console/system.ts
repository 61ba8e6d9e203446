import type { AuditTrail } from '../../lib/audit/audit-trail.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ApiKeys } from '../../lib/keys/api-keys.ts';
import type { LicenseStatus } from '../../lib/license/verify-license.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';

/** What a store may have besides the import. */
type ChangingFunction = 'expireHosts' | 'removeHosts' | 'removeWorkspace' | 'moveHosts' | 'updateWorkspace' | 'renameWorkspace';

/** What the operations work on. */
export interface System {
    /** For example `server.plugins['token-auth']`. */
    readonly keys: Pick<ApiKeys, 'create' | 'list' | 'reveal' | 'revoke'> & Partial<Pick<ApiKeys, 'sealAnew'>>;
    /** For example `server.plugins['webhook-exporter']`. */
    readonly webhooks: Pick<Webhooks, 'publish' | 'exporters' | 'deliveries' | 'events'> & Partial<Pick<Webhooks, 'doctor'>>;
    /** For example `postgresInventory({ pool })`. */
    readonly inventory: Pick<InventoryWriter, 'importHosts' | 'replaces' | 'dryRuns' | ChangingFunction> & Partial<InventoryStore>;
    readonly license: InstalledLicense;
    /** Tells of every operation that changes something, for example `auditTrail({ store })`. */
    readonly audit: AuditTrail;
    /** Brings the schema up to date and answers with the ids of the migrations that ran, for example `() => migrate(pool)`. */
    readonly migrate: () => Promise<readonly string[]>;
}

/** The licence of a system. */
export interface InstalledLicense {
    inspect(): Promise<LicenseStatus>;
    /** @throws ScanwireError `INVALID_INPUT` when it is not valid now; the old one stays. */
    install(text: string): Promise<LicenseStatus>;
    /** Sets the key that licences are checked with from now on. @param publicKey SPKI PEM. @throws ScanwireError `INVALID_INPUT`. */
    trust(publicKey: string): Promise<LicenseStatus>;
}

/** What an application has of a {@link System}: for a part that is absent there are no operations. */
export interface HostSystem extends Partial<Omit<System, 'license'>> {
    readonly license?: Pick<InstalledLicense, 'inspect'> & Partial<InstalledLicense>;
}
