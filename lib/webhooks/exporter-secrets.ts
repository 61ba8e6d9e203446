import type { KeyRing } from '../keys/key-ring.ts';
import type { HeaderPairs, StoredExporter } from './exporter.ts';

/** What a secret of this exporter is sealed for. */
export const secretContext = (exporterId: string): string => `exporter:${exporterId}`;

/** What the additional headers of this exporter are sealed for. */
export const headersContext = (exporterId: string): string => `exporter:${exporterId}:headers`;

/** The secrets that sign now, the current one first. @throws ScanwireError `UNSEALABLE`. */
export function openSecrets(exporter: StoredExporter, keyRing: KeyRing, now: Date): readonly [current: string, ...previous: string[]] {
    const context = secretContext(exporter.id);
    const current = keyRing.open(exporter.sealedSecret, context);
    const { sealedPreviousSecret, previousSecretUntil } = exporter;
    const overlaps = sealedPreviousSecret !== null && previousSecretUntil !== null && previousSecretUntil > now;
    return overlaps ? [current, keyRing.open(sealedPreviousSecret, context)] : [current];
}

/** The additional headers with their values. @throws ScanwireError `UNSEALABLE`. */
export function openHeaders(exporter: StoredExporter, keyRing: KeyRing): HeaderPairs {
    return exporter.sealedHeaders === null ? [] : JSON.parse(keyRing.open(exporter.sealedHeaders, headersContext(exporter.id)));
}
