import { ScanwireError } from '../errors.ts';
import type { ExportType } from './choices.ts';
import type { ExporterChanges, ExporterPatch, StoredExporter } from './exporter.ts';
import { checkedChoices, sealFormatSecret } from './formatting.ts';
import { sealHeaders } from './headers.ts';
import type { WebhooksContext } from './options.ts';
import { checkReceiverUrl } from './receiver-url.ts';
import { knownUrl, urlToStore } from './sealed-url.ts';
import { changeSecret, checkSecret } from './signature.ts';

/** What is to be stored of changes that were asked for. @throws ScanwireError as `Exporters.update`. */
export async function patchOf(before: StoredExporter, changes: ExporterChanges, context: WebhooksContext): Promise<ExporterPatch> {
    const { url, secret, formatSecret: _, headers, type, keepHeaders = false, ...stored } = changes;
    const patch = {
        ...stored,
        ...formatPatch(before, changes, context),
        ...(url !== undefined &&
            (await urlPatch(before, checkReceiverUrl(url, context.guard), keepHeaders || headers !== undefined, context))),
        ...(headers !== undefined && sealHeaders(before.id, headers, context)),
        ...(secret !== undefined && (await secretPatch(before, checkSecret(secret), context))),
        ...(type !== undefined && type !== before.type && typePatch(before, type)),
    };
    const choices = checkedChoices({ ...before, ...patch }, context);
    return { ...patch, ...(stored.filter !== undefined && { filter: choices.filter }) };
}

/** The secret of a format, and its template, end with it. */
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

/**
 * Headers hold keys of the receiver that they were given for, and whoever may change an exporter could never read them: a URL of another
 * origin must not take them along unasked.
 */
async function urlPatch(before: StoredExporter, url: string, isHeadersSettled: boolean, context: WebhooksContext): Promise<ExporterPatch> {
    const patch = { url: await urlToStore(before.id, url, context) };
    if (isHeadersSettled) {
        return patch;
    }

    const known = knownUrl(before, context.keyRing);
    const former = known !== null && URL.canParse(known) ? new URL(known).origin : null;
    if (before.sealedHeaders !== null && new URL(url).origin !== former) {
        throw new ScanwireError(
            'INVALID_INPUT',
            'Headers must be given again, or keepHeaders be true: the URL leads to another scheme, host or port, and would take their values there',
            { field: 'headers' },
        );
    }

    return { ...patch, ifHeaders: before.sealedHeaders };
}

async function secretPatch(before: StoredExporter, secret: string, { keyRing, deliveries }: WebhooksContext): Promise<ExporterPatch> {
    const changed = changeSecret(before, secret, keyRing, await deliveries.now());
    return changed === null ? {} : { ...changed, ifSecret: before.sealedSecret };
}

function typePatch(before: StoredExporter, type: ExportType): ExporterPatch {
    if (!before.legacy) {
        throw new ScanwireError('CONFLICT', 'Cannot change the type of an exporter that is not legacy', { field: 'type' });
    }

    if (before.type !== 'investigation_legacy' || type !== 'investigation_legacy_and_library') {
        const allowed = 'once, from investigation_legacy to investigation_legacy_and_library, and never back';
        throw new ScanwireError('CONFLICT', `Cannot change the type of a legacy exporter but ${allowed}`, { field: 'type' });
    }

    return { type, ifType: before.type };
}
