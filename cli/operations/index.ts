import { listDeliveries, replayDelivery, showDelivery } from './deliveries.ts';
import { publishEvent } from './events.ts';
import {
    createExporter,
    listExporters,
    removeExporter,
    showExporter,
    startExporter,
    stopExporter,
    testExporter,
    updateExporter,
} from './exporters.ts';
import { importScan } from './import.ts';
import { createKey, listKeys, revealKey, revokeKey } from './keys.ts';
import { installLicense, showLicense } from './license.ts';
import { migrate } from './migrate.ts';
import type { Operation } from './operation.ts';

/** Everything that can be asked of a server through its socket. */
export const operations: readonly Operation<object, unknown>[] = [
    createKey,
    listKeys,
    revealKey,
    revokeKey,
    createExporter,
    listExporters,
    showExporter,
    updateExporter,
    startExporter,
    stopExporter,
    testExporter,
    removeExporter,
    publishEvent,
    listDeliveries,
    showDelivery,
    replayDelivery,
    showLicense,
    installLicense,
    importScan,
    migrate,
];
