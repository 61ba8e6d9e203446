import Joi from 'joi';
import { guardFor } from '../../egress/guard.ts';
import { ScanwireError } from '../../errors.ts';
import { checkSubscription, type Subscription } from '../events/subscription.ts';
import { native } from '../formats/envelopes.ts';
import { checkFormat, lackingFormat, UnknownFormat } from '../formats/format.ts';
import { sealedFormatSecret, sealFormatSecret } from '../formats/format-secret.ts';
import { changedHeaders, type HeaderChanges, keepsHeaders, sealHeaders, unsealHeaders } from '../messages/message-headers.ts';
import { changeSecret, checkSecret, sealSecret } from '../messages/signing-secret.ts';
import { EXPORT_TYPES, type ExportType } from '../setting-values.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { authenticationPatch, checkAuthentication, splitAuthentication, storedAuthentication } from './authentication.ts';
import { carriedPatch } from './carried-secrets.ts';
import {
    type CheckedExporterSettings,
    configurableSchemas,
    type ExporterSettings,
    newExporter,
    ownerSchema,
    type StoredExporter,
} from './exporter.ts';
import { assertCollector, assertOwnerMayChange } from './owner-limits.ts';
import { checkReceiverUrl } from './receiver-url.ts';
import { unsealUrl, urlToStore } from './sealed-url.ts';

/** What may change of an exporter; what is absent stays. */
export interface ExporterChanges extends Partial<Omit<ExporterSettings, 'headers'>> {
    /** All additional headers from then on; a value of null keeps the one that there is. */
    readonly headers?: HeaderChanges;
    /** Only `investigation_legacy` can change, only to `investigation_legacy_and_library`, and never back. */
    readonly type?: ExportType;
    /**
     * Whose it is from then on, null for the deployment's. Only while nothing but `test` events is kept of what it was sent, and no replay: another
     * owner would be shown them.
     */
    readonly owner?: string | null;
    /**
     * Keeps the additional headers, the credentials and the secret of the format for the new URL, although it has another scheme, host or port, or
     * although a proxy can read them that could not before. Without it such a change has to give all of them again (`headers` with all values,
     * `basic` and so on), since they were given for the receiver before. It is for the operator to say: where its owner changes the exporter it counts
     * for nothing.
     */
    readonly keepHeaders?: boolean;
    /**
     * How long the secret before a new one goes on signing, in milliseconds: at most 30 days, 0 for not at all. A day when absent. Secrets that
     * were changed before keep their own ends.
     */
    readonly overlap?: number;
}

/** In milliseconds. */
const MAX_OVERLAP = 30 * 86_400_000;

/** The rules of {@link ExporterChanges}. */
export const exporterChangesSchema: Joi.ObjectSchema<ExporterChanges> = Joi.object({
    ...configurableSchemas,
    headers: Joi.array()
        .items(Joi.array().ordered(Joi.string().required(), Joi.string().allow('', null).required()))
        .description('All additional headers from then on, pairs of name and value; null for the value that there is'),
    type: Joi.string()
        .valid(...EXPORT_TYPES)
        .description('Of a legacy exporter: from `investigation_legacy` to `investigation_legacy_and_library`, once'),
    owner: ownerSchema
        .allow(null)
        .description("Whose it is from then on; null for the deployment's. Only while nothing is kept of what it was sent"),
    keepHeaders: Joi.boolean().description(
        'Sends headers and credentials to the new URL although it leads to another scheme, host or port, or where the proxy can read them now; an owner cannot',
    ),
    overlap: Joi.number()
        .integer()
        .min(0)
        .max(MAX_OVERLAP)
        .description('Milliseconds for which the secret before a new one goes on signing, 0 for not at all; a day when absent'),
})
    .label('changes')
    .min(1)
    .required();

/** What an exporter's settings are changed to; what is absent stays. */
export type ExporterPatch = Partial<Omit<StoredExporter, 'id' | 'createdAt' | 'updatedAt' | 'consecutiveFailures' | 'legacy'>> & {
    /** Stored only if the exporter still has this type; else `CONFLICT`. */
    readonly expectedType?: ExportType;
    /** Only when its `sealedSecret` is still this text; else `CONFLICT`. */
    readonly expectedSecret?: string;
    /** Only when its `sealedHeaders` is still this, null for none; else `CONFLICT`. */
    readonly expectedHeaders?: string | null;
    /** Only when its `sealedFormatSecret` is still this, null for none; else `CONFLICT`. */
    readonly expectedFormatSecret?: string | null;
    /** Only when its `sealedAuthentication` is still this, null for none; else `CONFLICT`. */
    readonly expectedAuthentication?: string | null;
    /** Only when its `url` is still this text; else `CONFLICT`. */
    readonly expectedUrl?: string;
    /** Only when its `owner` is still this, null for the deployment's; else `CONFLICT`. */
    readonly expectedOwner?: string | null;
};

/** A new exporter as it is stored. @throws ScanwireError `INVALID_INPUT` with the field. */
export async function exporterToStore(
    settings: CheckedExporterSettings,
    secret: string,
    context: WebhooksContext,
): Promise<StoredExporter> {
    const { keyRing, guard, deliveries } = context;
    const { url, headers, formatSecret } = settings;
    const begun = newExporter(context.newId(), settings, await deliveries.now());
    const { id } = begun;
    const exporter: StoredExporter = {
        ...begun,
        url: await urlToStore(id, checkReceiverUrl(url, guardFor(guard, begun.owner)), context),
        sealedSecret: sealSecret(keyRing, id, secret),
        ...sealHeaders(id, headers, context),
        sealedFormatSecret: formatSecret === undefined ? null : sealFormatSecret(id, formatSecret, keyRing),
        ...storedAuthentication(id, null, splitAuthentication(settings)[0], keyRing),
    };
    checkAuthentication(exporter, context);
    return { ...exporter, ...checkedChoices(exporter, context) };
}

/** What is to be stored of changes that were asked for. @throws ScanwireError as `Exporters.update`. */
export async function patchOf(
    before: StoredExporter,
    changes: ExporterChanges,
    context: WebhooksContext,
    asOwner = false,
): Promise<ExporterPatch> {
    const [authentication, others] = splitAuthentication(changes);
    const { url, secret, formatSecret: _, headers, type, owner, keepHeaders: __, overlap, ...stored } = others;
    if (overlap !== undefined && secret === undefined) {
        throw new ScanwireError('INVALID_INPUT', 'Overlap goes with a new secret: it is how long the former one goes on signing', {
            field: 'overlap',
        });
    }

    const isHandedOver = owner !== undefined && owner !== before.owner;
    const guard = guardFor(context.guard, isHandedOver ? owner : before.owner);
    if (isHandedOver && url === undefined) {
        checkReceiverUrl(unsealUrl(before, context.keyRing), guard);
    }
    const changed = {
        ...stored,
        ...(isHandedOver && { owner }),
        ...formatPatch(before, changes, context),
        ...(url !== undefined && { url: await urlToStore(before.id, checkReceiverUrl(url, guard), context) }),
        ...authenticationPatch(before, authentication, context.keyRing),
        ...(headers !== undefined && headersPatch(before, headers, context)),
        ...(secret !== undefined && (await secretPatch(before, checkSecret(secret), overlap, context))),
        ...(type !== undefined && type !== before.type && typePatch(before, type)),
    };
    const after = { ...before, ...changed };
    const patch = { ...changed, ...carriedPatch(before, after, changes, { keyRing: context.keyRing, asOwner }) };
    if (isHandedOver || stored.collector !== undefined) {
        assertCollector(after, context);
    }
    checkAuthentication(after, context);
    return { ...patch, ...checkedChanges(after, changes, context) };
}

/**
 * Checks what the changes touch of what an exporter chooses: a process that lacks kinds or formats of the application may change all else of it.
 *
 * @returns The filter as it is stored, where it changes.
 */
function checkedChanges(after: StoredExporter, changes: ExporterChanges, context: WebhooksContext): Pick<ExporterPatch, 'filter'> {
    const { format, template, formatSecret, headers, kinds, filter } = changes;
    checkKept(after, context);
    const isOfFormat = template !== undefined || formatSecret !== undefined;
    const isKnown = context.formats.has(after.format);
    if (format === undefined && isOfFormat && !isKnown) {
        throw new UnknownFormat(lackingFormat(after.format));
    }
    // A format may have headers of its own, which must not be among these.
    if (format !== undefined || isOfFormat || (headers !== undefined && isKnown)) {
        checkChosenFormat(after, context);
    }

    const choices = kinds === undefined && filter === undefined ? null : checkSubscription(after, context.kinds);
    return choices !== null && filter !== undefined ? { filter: choices.filter } : {};
}

/** What makes a change as if it had not been. */
export function undoing(patch: ExporterPatch, before: StoredExporter): ExporterPatch {
    const names = Object.keys(patch).filter((name) => Object.hasOwn(before, name)) as (keyof StoredExporter)[];
    return Object.fromEntries(names.map((name) => [name, before[name]]));
}

/** The same where its owner asks for the changes. @throws ScanwireError as well for what is for the operator to give. */
export async function ownersPatchOf(before: StoredExporter, changes: ExporterChanges, context: WebhooksContext): Promise<ExporterPatch> {
    assertOwnerMayChange(before, changes, context.keyRing);
    const patch = await patchOf(before, changes, context, true);
    const moves = changes.url !== undefined || changes.oauth !== undefined || changes.proxy !== undefined;
    // What the operator gives meanwhile is given for the receiver that there was; what he takes back meanwhile stays taken back.
    const { trust, ...others } = moves ? { trust: before.trust, ...patch, expectedAuthentication: before.sealedAuthentication } : patch;
    return trust === undefined || trust === 'all' ? others : { ...others, trust };
}

/** The headers to store. A value that stays must not have been changed meanwhile. */
function headersPatch(before: StoredExporter, headers: HeaderChanges, context: WebhooksContext): ExporterPatch {
    const sealed = sealHeaders(before.id, changedHeaders(before, headers, context.keyRing), context);
    return keepsHeaders(headers) ? { ...sealed, expectedHeaders: before.sealedHeaders } : sealed;
}

/** The format to store. A change of format removes the secret and the template of the one before. */
function formatPatch(
    before: StoredExporter,
    { format = before.format, template, formatSecret }: ExporterChanges,
    context: WebhooksContext,
): ExporterPatch {
    const kept = format === before.format;
    const sealed = formatSecret === undefined ? null : sealFormatSecret(before.id, formatSecret, context.keyRing);
    return {
        ...((sealed !== null || !kept) && { sealedFormatSecret: sealed }),
        ...(template === undefined && !kept && { template: null }),
    };
}

async function secretPatch(
    before: StoredExporter,
    secret: string,
    overlap: number | undefined,
    { keyRing, deliveries }: WebhooksContext,
): Promise<ExporterPatch> {
    const changed = changeSecret(before, secret, keyRing, await deliveries.now(), overlap);
    return changed === null ? {} : { ...changed, expectedSecret: before.sealedSecret };
}

function typePatch(before: StoredExporter, type: ExportType): ExporterPatch {
    if (!before.legacy) {
        throw new ScanwireError('CONFLICT', 'Cannot change the type of an exporter that is not legacy', { field: 'type' });
    }

    if (before.type !== 'investigation_legacy' || type !== 'investigation_legacy_and_library') {
        const allowed = 'once, from investigation_legacy to investigation_legacy_and_library, and never back';
        throw new ScanwireError('CONFLICT', `Cannot change the type of a legacy exporter but ${allowed}`, { field: 'type' });
    }

    return { type, expectedType: before.type };
}

/**
 * Checks what an exporter chooses, and how it is sent. Its format's secret is read.
 *
 * @returns Kinds and filter as they are stored.
 * @throws ScanwireError `INVALID_INPUT` for kinds, a filter or a format that cannot be, with the field; `MISCONFIGURED` in a store that
 *     keeps none of them, or no order; `UNSEALABLE`.
 */
function checkedChoices(choices: StoredExporter, context: WebhooksContext): Subscription {
    checkKept(choices, context);
    checkChosenFormat(choices, context);
    return checkSubscription(choices, context.kinds);
}

function checkChosenFormat(choices: StoredExporter, { formats, vendor, keyRing }: WebhooksContext): void {
    const [sealed] = sealedFormatSecret(choices);
    const secret = sealed === undefined ? undefined : keyRing.open(sealed.sealed, sealed.context);
    checkFormat(formats, choices, { vendor: vendor.name, secret, headers: unsealHeaders(choices, keyRing) });
}

/** @throws ScanwireError `MISCONFIGURED` in a store that keeps no such choices. */
function checkKept(choices: StoredExporter, { exporters, deliveries }: WebhooksContext): void {
    const { kinds, filter, owner, format: name } = choices;
    if (choices.ordered && deliveries.ordered !== true) {
        throw new ScanwireError('MISCONFIGURED', 'The store keeps no order', { field: 'ordered' });
    }
    const chosen = { owner, kinds, filter, format: name === native.name ? null : name };
    const [field] = Object.entries(chosen).find(([, value]) => value !== null) ?? [];
    if (field !== undefined && !exporters.subscribers) {
        throw new ScanwireError('MISCONFIGURED', `The store keeps no ${field} of an exporter`, { field });
    }
}
