import { ScanwireError } from '../../errors.ts';
import { isSealedByFormerKey, type KeyRing, type Resealed, reseal, type SealedText } from '../../keys/key-ring.ts';
import { sealedFormatSecret } from '../formats/format-secret.ts';
import { sealedHeaders } from '../messages/message-headers.ts';
import { sealedSecrets } from '../messages/signing-secret.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { sealedAuthentication } from './authentication.ts';
import type { StoredExporter } from './exporter.ts';
import type { ExporterPatch } from './exporter-patch.ts';
import type { ExporterStore } from './exporter-store.ts';
import { sealedUrl } from './sealed-url.ts';

/** All sealed texts of an exporter that may still be needed. */
function sealedFor(exporter: StoredExporter, now: Date): readonly SealedText[] {
    return [
        ...sealedSecrets(exporter, now),
        ...sealedHeaders(exporter),
        ...sealedFormatSecret(exporter),
        ...sealedAuthentication(exporter),
        ...sealedUrl(exporter),
    ];
}

/** All sealed texts of the exporters of a store that may still be needed, to check whether a key ring opens them. */
export async function sealedForExporters(store: ExporterStore, now: Date): Promise<readonly SealedText[]> {
    return (await store.list({ patient: true })).flatMap((exporter) => sealedFor(exporter, now));
}

/** The fields that hold a sealed text; previous secrets do as well. */
const FIELDS = ['url', 'sealedSecret', 'sealedHeaders', 'sealedFormatSecret', 'sealedAuthentication'] as const;

/** Exporters that one batch reads. */
const MAX_RESEALED = 50;

/** A batch of them, see `Exporters.sealAnew`. */
export async function resealExporters(
    { exporters: store, deliveries, keyRing }: Pick<WebhooksContext, 'exporters' | 'deliveries' | 'keyRing'>,
    after: string | null,
): Promise<Resealed> {
    const now = await deliveries.now();
    const ids = await idsBehind(after, store);
    const batch = ids.slice(0, MAX_RESEALED);
    const unopened: string[] = [];
    let sealed = 0;
    for (const id of batch) {
        const done = await resealOne(id, { store, keyRing, now });
        unopened.push(...done.unopened);
        sealed += done.isSealed ? 1 : 0;
    }
    return { sealed, unopened, next: ids.length > MAX_RESEALED ? (batch.at(-1) ?? null) : null };
}

/**
 * The ids that follow this one, in their order, so that a pass goes on behind an exporter that is gone as well. No sealed text is read for them
 * where the store has summaries.
 */
async function idsBehind(after: string | null, store: ExporterStore): Promise<readonly string[]> {
    const all = (await store.summaries?.({})) ?? (await store.list({ patient: true }));
    const ids = all.map(({ id }) => id).filter((id) => after === null || id > after);
    return ids.sort((a, b) => (a < b ? -1 : 1));
}

/**
 * The patch that seals the texts of an exporter again, and removes previous secrets that have ended. It stores nothing if somebody has changed a
 * sealed text meanwhile.
 */
function patchOf(exporter: StoredExporter, resealed: ReadonlyMap<string, string>, now: Date): ExporterPatch {
    const texts = FIELDS.map((field) => [field, resealed.get(exporter[field] ?? '')] as const).filter(([, text]) => text !== undefined);
    const valid = exporter.previousSecrets.filter(({ until }) => until > now);
    return {
        ...Object.fromEntries(texts),
        previousSecrets: valid.map(({ sealed, until }) => ({ sealed: resealed.get(sealed) ?? sealed, until })),
        expectedUrl: exporter.url,
        expectedSecret: exporter.sealedSecret,
        expectedHeaders: exporter.sealedHeaders,
        expectedFormatSecret: exporter.sealedFormatSecret,
        expectedAuthentication: exporter.sealedAuthentication,
    };
}

/** How often one exporter is tried that others change at the same time. */
const MAX_CHANGES_MEANWHILE = 5;

/**
 * Where somebody has just changed it, what they have stored is sealed again in its place: they may have sealed it with the former key.
 *
 * @returns Whether it is sealed with the current key and was not before, and what the ring cannot open.
 */
async function resealOne(
    id: string,
    parts: { readonly store: ExporterStore; readonly keyRing: KeyRing; readonly now: Date },
    tries: number = MAX_CHANGES_MEANWHILE,
): Promise<{ readonly isSealed: boolean; readonly unopened: readonly string[] }> {
    const { store, keyRing, now } = parts;
    const exporter = await store.get(id);
    if (exporter === null || !hasOutdated(exporter, keyRing)) {
        return { isSealed: false, unopened: [] };
    }

    const { resealed, unopened } = reseal(keyRing, sealedFor(exporter, now));
    try {
        await store.update(id, patchOf(exporter, resealed, now));
        return { isSealed: unopened.length === 0, unopened };
    } catch (error) {
        const code = error instanceof ScanwireError ? error.code : null;
        if (code === 'NOT_FOUND') {
            return { isSealed: false, unopened: [] };
        }
        if (code === 'CONFLICT' && tries > 1) {
            return await resealOne(id, parts, tries - 1);
        }
        throw error;
    }
}

function hasOutdated(exporter: StoredExporter, keyRing: KeyRing): boolean {
    const texts = [...FIELDS.map((field) => exporter[field] ?? ''), ...exporter.previousSecrets.map(({ sealed }) => sealed)];
    return texts.some((sealed) => isSealedByFormerKey(sealed, keyRing));
}
