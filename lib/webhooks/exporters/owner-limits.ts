import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import { unsealAuthentication } from './authentication.ts';
import { collectorSchema, ownerSchema, type StoredExporter } from './exporter.ts';
import type { ExporterLists } from './exporter-lists.ts';
import type { ExporterChanges } from './exporter-patch.ts';
import { knownUrl } from './sealed-url.ts';

/** What the exporters of an owner may be. */
export interface OwnerLimits {
    /** Maximum number of exporters. When absent, the limit of all owners. */
    readonly maxExporters?: number;
    /** The collectors that the exporters may belong to. All when absent. */
    readonly collectors?: readonly string[];
}

/** What owners may have. An owner that is not named has the limits for all. */
export interface OwnerSettings {
    /** Maximum number of exporters of an owner; null for any number. Default null. */
    readonly maxExportersPerOwner?: number | null;
    /** What differs for some, by their names. */
    readonly owners?: Readonly<Record<string, OwnerLimits>>;
}

const maxSchema = Joi.number().integer().min(0);

/** The rules of {@link OwnerSettings}, with their defaults. */
export const ownerSettingSchemas: Readonly<Record<keyof OwnerSettings, Joi.Schema>> = {
    maxExportersPerOwner: maxSchema.allow(null).default(null),
    owners: Joi.object()
        .pattern(ownerSchema, Joi.object({ maxExporters: maxSchema, collectors: Joi.array().items(collectorSchema) }))
        .default({}),
};

type Checked = Required<OwnerSettings>;

/** {@link OwnerSettings} in plain JSON, as they are kept: only what is not as by default. */
export interface KeptOwnerSettings {
    readonly maxExportersPerOwner?: number;
    readonly owners?: Readonly<Record<string, OwnerLimits>>;
}

/** What is to be kept of the settings. The order in which collectors were given makes no difference. */
export function keptOwnerSettings({ maxExportersPerOwner: max, owners }: Checked): KeptOwnerSettings {
    const named = Object.entries(owners).map(([owner, { maxExporters, collectors }]): [string, OwnerLimits] => [
        owner,
        {
            ...(maxExporters !== undefined && { maxExporters }),
            ...(collectors !== undefined && { collectors: [...new Set(collectors)].toSorted() }),
        },
    ]);
    return { ...(max !== null && { maxExportersPerOwner: max }), ...(named.length > 0 && { owners: Object.fromEntries(named) }) };
}

function limitsOf(owner: string | null, { owners }: Pick<Checked, 'owners'>): OwnerLimits {
    return owner !== null && Object.hasOwn(owners, owner) ? (owners[owner] as OwnerLimits) : {};
}

/** @throws ScanwireError `INVALID_INPUT`, field `collector`, for one that the owner of the exporter may not use. */
export function assertCollector(
    { owner, collector }: Pick<StoredExporter, 'owner' | 'collector'>,
    settings: Pick<Checked, 'owners'>,
): void {
    const { collectors } = limitsOf(owner, settings);
    if (collectors !== undefined && !collectors.includes(collector)) {
        const message = `Collector must be one that its owner may use: ${collectors.join(', ') || 'there is none'}`;
        throw new ScanwireError('INVALID_INPUT', message, { field: 'collector' });
    }
}

/** How an exporter becomes an owner's. */
export interface Acquisition<Stored> {
    /** Null for the deployment, which may have any number. */
    readonly owner: string | null;
    store(): Promise<Stored>;
    /** Makes it as if it had not been stored. */
    undo(): Promise<unknown>;
}

/**
 * Stores an exporter that becomes an owner's if they may have one more. Of several that are stored at the same time for the last place, at most one
 * stays, and perhaps none.
 *
 * @throws ScanwireError `CONFLICT`, field `owner`.
 */
export async function storedWithinOwnerLimit<Stored>(
    settings: Checked,
    { owner, store, undo }: Acquisition<Stored>,
    { summaries }: Pick<ExporterLists, 'summaries'>,
): Promise<Stored> {
    const max = owner === null ? null : (limitsOf(owner, settings).maxExporters ?? settings.maxExportersPerOwner);
    if (owner === null || max === null) {
        return await store();
    }

    async function assertRoom(more: number): Promise<void> {
        const { length } = await summaries({ owner: owner as string });
        if (length + more > (max as number)) {
            throw new ScanwireError('CONFLICT', `Owner cannot have more exporters than ${max}`, { field: 'owner' });
        }
    }

    await assertRoom(1);
    const stored = await store();
    try {
        await assertRoom(0);
    } catch (error) {
        await undo();
        throw error;
    }
    return stored;
}

/**
 * Only the operator may loosen how receivers are identified. An owner who changes an exporter may leave such a setting as it is, but not ask for
 * it.
 *
 * @param before The exporter that is changed; absent for a new one.
 * @throws ScanwireError `INVALID_INPUT` with the field.
 */
export function assertOwnerMay({ trust, proxy }: Pick<ExporterChanges, 'trust' | 'proxy'>, before?: Pick<StoredExporter, 'trust'>): void {
    if (trust === 'all' && before?.trust !== 'all') {
        throw new ScanwireError('INVALID_INPUT', 'Trust must not be all: that is for the operator to give', { field: 'trust' });
    }
    if (proxy?.resolvesNames === true) {
        const message = 'Proxy.resolvesNames must not be true: that is for the operator to give';
        throw new ScanwireError('INVALID_INPUT', message, { field: 'proxy.resolvesNames' });
    }
}

/**
 * The same for a change, and whose the exporter is stays. What the operator gave was given for one receiver: while it stays, its owner cannot take it to another, nor the proxy to
 * another token server.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field; `UNSEALABLE`.
 */
export function assertOwnerMayChange(before: StoredExporter, changes: ExporterChanges, keyRing: KeyRing): void {
    if (changes.owner !== undefined && changes.owner !== before.owner) {
        throw new ScanwireError('INVALID_INPUT', 'Owner must stay: that is for the operator to give', { field: 'owner' });
    }
    assertOwnerMay(changes, before);
    const { url, oauth, proxy, trust = before.trust } = changes;
    const moves = url !== undefined && isElsewhere(url, knownUrl(before, keyRing));
    if (moves && trust === 'all') {
        throw stays('url', 'URL', 'trust is all');
    }
    if (proxy && trust === 'all') {
        const message = 'Proxy must stay while trust is all: that is for the operator to give, for one receiver';
        throw new ScanwireError('INVALID_INPUT', message, { field: 'proxy' });
    }
    if (proxy !== undefined || !before.authentication.includes('proxy') || !(moves || oauth)) {
        return;
    }

    const { proxy: given, oauth: former } = unsealAuthentication(before, keyRing) ?? {};
    if (given?.resolvesNames === true) {
        const why = 'the proxy resolves names';
        if (moves) {
            throw stays('url', 'URL', why);
        }
        if (oauth && isElsewhere(oauth.tokenUrl, former?.tokenUrl ?? null)) {
            throw stays('oauth.tokenUrl', 'Oauth.tokenUrl', why);
        }
    }
}

/** Whether a URL leads to another scheme, host or port than the one before. One that is none is refused for that. */
function isElsewhere(url: string, former: string | null): boolean {
    return URL.canParse(url) && (former === null || !URL.canParse(former) || new URL(url).origin !== new URL(former).origin);
}

function stays(field: string, subject: string, why: string): ScanwireError {
    const message = `${subject} must keep its scheme, host and port while ${why}: that is for the operator to give, for one receiver`;
    return new ScanwireError('INVALID_INPUT', message, { field });
}
