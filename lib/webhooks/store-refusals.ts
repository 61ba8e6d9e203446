import { ScanwireError } from '../errors.ts';
import type { StoredExporter } from './exporters/exporter.ts';
import type { ExporterPatch } from './exporters/exporter-patch.ts';

/** What every store refuses, in the same words. */
export const storeRefusals = {
    unknownExporter: (): ScanwireError => new ScanwireError('NOT_FOUND', 'Unknown exporter', { field: 'id' }),
    unknownDelivery: (): ScanwireError => new ScanwireError('NOT_FOUND', 'Unknown delivery', { field: 'id' }),
    exporterExists: (cause?: unknown): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot add an exporter whose id exists already', { cause }),
    exporterTypeChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change the type of an exporter that has another type by now'),
    exporterSecretChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change the secret of an exporter that has another secret by now'),
    exporterHeadersChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change the URL of an exporter that has other headers by now'),
    exporterFormatSecretChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change an exporter that has another secret of its format by now'),
    exporterAuthenticationChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change an exporter that authenticates by something else by now'),
    exporterOwnerChanged: (): ScanwireError => new ScanwireError('CONFLICT', 'Cannot change an exporter that has another owner by now'),
    ownerStays: (): ScanwireError =>
        new ScanwireError(
            'CONFLICT',
            'Cannot change the owner of an exporter while deliveries or replays of it are kept, which another owner would be shown: add another exporter',
            { field: 'owner' },
        ),
    exporterUrlChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot change the URL of an exporter that has another URL by now'),
    eventExists: (cause?: unknown): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot accept an event whose id was accepted before', { cause }),
    messagesTooLong: (max: number, characters: number): ScanwireError =>
        new ScanwireError(
            'INVALID_INPUT',
            `Messages of what is published at once, one for each exporter with a format, must have at most ${max} characters in all; these have ${characters}`,
            { field: 'body' },
        ),
    subscribersChanged: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot accept an event for exporters that choose otherwise by now', { field: 'revision' }),
    keyTaken: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot accept another kind or body under an idempotency key that was used before', {
            field: 'idempotencyKey',
        }),
    unknownEvent: (): ScanwireError => new ScanwireError('NOT_FOUND', 'Unknown event', { field: 'id' }),
    unknownReplay: (): ScanwireError => new ScanwireError('NOT_FOUND', 'Unknown replay', { field: 'id' }),
    eventErased: (): ScanwireError => new ScanwireError('CONFLICT', 'Cannot replay a delivery whose event was erased: its body is gone'),
    notReplayable: (): ScanwireError =>
        new ScanwireError(
            'CONFLICT',
            'Cannot replay a delivery that is being sent, has had no attempt yet, was discarded, or has no exporter',
        ),
    notDiscardable: (): ScanwireError =>
        new ScanwireError('CONFLICT', 'Cannot discard a delivery that is being sent, or was delivered, cancelled or erased'),
    noTransactions: (): ScanwireError =>
        new ScanwireError('MISCONFIGURED', 'Cannot join a transaction: this store has none', { field: 'tx' }),
} as const;

/** Why a patch is refused: the exporter has changed since, and is not as the patch expects. Null when it is. */
export function patchRefusal(exporter: StoredExporter, patch: ExporterPatch): ScanwireError | null {
    const { expectedType, expectedSecret, expectedHeaders, expectedFormatSecret, expectedAuthentication, expectedUrl, expectedOwner } =
        patch;
    const expected = [
        [expectedType, exporter.type, storeRefusals.exporterTypeChanged],
        [expectedSecret, exporter.sealedSecret, storeRefusals.exporterSecretChanged],
        [expectedHeaders, exporter.sealedHeaders, storeRefusals.exporterHeadersChanged],
        [expectedFormatSecret, exporter.sealedFormatSecret, storeRefusals.exporterFormatSecretChanged],
        [expectedAuthentication, exporter.sealedAuthentication, storeRefusals.exporterAuthenticationChanged],
        [expectedUrl, exporter.url, storeRefusals.exporterUrlChanged],
        [expectedOwner, exporter.owner, storeRefusals.exporterOwnerChanged],
    ] as const;
    const [, , refusal] = expected.find(([wanted, found]) => wanted !== undefined && wanted !== found) ?? [];
    return refusal?.() ?? null;
}
