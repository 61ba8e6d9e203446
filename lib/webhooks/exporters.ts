import { checked } from '../checked.ts';
import type { Clock } from '../clock.ts';
import type { EgressGuard } from '../egress/guard.ts';
import { ScanwireError } from '../errors.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { eventBody, testEvent } from './events.ts';
import {
    DEFAULT_COLLECTOR,
    type Exporter,
    type ExporterChanges,
    type ExportType,
    exporterChangesSchema,
    type HeaderPairs,
    type NewExporterSettings,
    newExporterSchema,
    type StoredExporter,
} from './exporter.ts';
import { checkAdditionalHeaders } from './headers.ts';
import { checkReceiverUrl } from './receiver-url.ts';
import { checkSecret, generateSecret, type Vendor } from './signature.ts';
import type { Attempt, DeliveryStore, ExporterPatch, ExporterStore } from './store.ts';

/** What a `test` event came to. */
export interface TestOutcome {
    readonly deliveryId: string;
    /** Null when it had no outcome in the time that it was waited for: no worker of its collector took it, or, on stop, it takes a moment longer. */
    readonly attempt: Attempt | null;
}

/** An exporter after a change, and what the `test` came to that the change sent. */
export interface ChangedExporter {
    readonly exporter: Exporter;
    readonly test: TestOutcome;
}

/** Configured receivers. Methods reject with ScanwireError `NOT_FOUND` for an unknown id and `UNAVAILABLE` without a store. */
export interface Exporters {
    /** A stopped exporter and its signing secret. @throws ScanwireError `INVALID_INPUT` with the field. */
    create(settings: NewExporterSettings): Promise<{ readonly exporter: Exporter; readonly secret: string }>;
    list(): Promise<readonly Exporter[]>;
    get(id: string): Promise<Exporter>;
    /** The signing secret, as the console shows it. @throws ScanwireError `UNSEALABLE`. */
    secret(id: string): Promise<string>;
    /**
     * Changes what is given and sends a `test`. After a change of the secret the old one stays valid for an overlap in the
     * signature forms that can carry two.
     *
     * @throws ScanwireError `INVALID_INPUT`, `CONFLICT` for a change of type that is not allowed.
     */
    update(id: string, changes: ExporterChanges): Promise<ChangedExporter>;
    /** From now on events are addressed to it, and what it held back is sent. Sends a `test`. */
    start(id: string): Promise<ChangedExporter>;
    /** New events pass it by; accepted deliveries wait in their rows. Sends a `test`, whose outcome is waited for a moment only. */
    stop(id: string): Promise<ChangedExporter>;
    /** Sends a `test` and waits for what it comes to. */
    test(id: string): Promise<TestOutcome>;
    /** Removes it with its secrets; deliveries under way are cancelled. */
    remove(id: string): Promise<void>;
}

export interface ExportersParts {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    readonly keyRing: KeyRing;
    readonly guard: EgressGuard;
    readonly vendor: Vendor;
    readonly clock: Clock;
    readonly newId: () => string;
    readonly sleep: (milliseconds: number) => Promise<void>;
    /** How long the old secret stays valid after a change, in milliseconds. */
    readonly secretOverlap: number;
    /** How long the outcome of a `test` is waited for, in milliseconds. */
    readonly testPatience: number;
    /** The same on stop, which nothing may delay. */
    readonly stopPatience: number;
    /** Called when a `test` was accepted. */
    readonly onAccepted: () => void;
}

export function exporters(parts: ExportersParts): Exporters {
    const { exporters: store, clock, newId } = parts;

    async function stored(id: string): Promise<StoredExporter> {
        const exporter = await store.get(id);
        if (exporter === null) {
            throw new ScanwireError('NOT_FOUND', 'Unknown exporter', { field: 'id' });
        }

        return exporter;
    }

    async function changed(id: string, patch: ExporterPatch, patience: number = parts.testPatience): Promise<ChangedExporter> {
        const exporter = await store.update(id, patch, clock());
        return { exporter: visible(exporter), test: await tested(exporter, patience) };
    }

    async function tested(exporter: StoredExporter, patience: number): Promise<TestOutcome> {
        return awaited(await requestTest(exporter, parts), patience, parts);
    }

    return {
        async create(settings) {
            const valid = checked(newExporterSchema, settings, { subject: 'Exporter' });
            const secret = valid.secret === undefined ? generateSecret() : checkSecret(valid.secret);
            const id = newId();
            const now = clock();
            const legacy = valid.legacy ?? false;
            const exporter: StoredExporter = {
                id,
                name: valid.name ?? '',
                url: checkReceiverUrl(valid.url, parts.guard),
                collector: valid.collector ?? DEFAULT_COLLECTOR,
                type: legacy ? 'investigation_legacy' : 'investigation',
                legacy,
                trust: valid.trust ?? 'strict',
                signatures: valid.signatures ?? ['base64'],
                schedule: valid.schedule ?? null,
                state: 'stopped',
                stopReason: null,
                consecutiveFailures: 0,
                createdAt: now,
                updatedAt: now,
                sealedSecret: parts.keyRing.seal(secret, secretContext(id)),
                sealedPreviousSecret: null,
                previousSecretUntil: null,
                ...headersPatch(id, valid.headers ?? [], parts),
            };
            await store.insert(exporter);
            return { exporter: visible(exporter), secret };
        },

        async list() {
            return (await store.list()).map(visible);
        },

        async get(id) {
            return visible(await stored(id));
        },

        async secret(id) {
            const [secret] = openSecrets(await stored(id), parts.keyRing, clock());
            return secret;
        },

        async update(id, changes) {
            const valid = checked(exporterChangesSchema, changes, { subject: 'Exporter' });
            return changed(id, patchOf(await stored(id), valid, parts));
        },

        async start(id) {
            return changed(id, { state: 'running', stopReason: null });
        },

        async stop(id) {
            return changed(id, { state: 'stopped', stopReason: null }, parts.stopPatience);
        },

        async test(id) {
            return tested(await stored(id), parts.testPatience);
        },

        async remove(id) {
            if (!(await store.remove(id, clock()))) {
                throw new ScanwireError('NOT_FOUND', 'Unknown exporter', { field: 'id' });
            }
        },
    };
}

function patchOf(before: StoredExporter, changes: ExporterChanges, parts: ExportersParts): ExporterPatch {
    const { url, secret, headers, type, ...plain } = changes;
    return {
        ...plain,
        ...(url !== undefined && { url: checkReceiverUrl(url, parts.guard) }),
        ...(headers !== undefined && headersPatch(before.id, headers, parts)),
        ...(secret !== undefined && secretPatch(before, checkSecret(secret), parts)),
        ...(type !== undefined && type !== before.type && typePatch(before, type)),
    };
}

function headersPatch(
    id: string,
    headers: HeaderPairs,
    { keyRing, vendor }: ExportersParts,
): Pick<StoredExporter, 'headerNames' | 'sealedHeaders'> {
    const pairs = checkAdditionalHeaders(headers, vendor);
    return {
        headerNames: pairs.map(([name]) => name),
        sealedHeaders: pairs.length === 0 ? null : keyRing.seal(JSON.stringify(pairs), headersContext(id)),
    };
}

function secretPatch(before: StoredExporter, secret: string, { keyRing, clock, secretOverlap }: ExportersParts): ExporterPatch {
    return {
        sealedSecret: keyRing.seal(secret, secretContext(before.id)),
        sealedPreviousSecret: before.sealedSecret,
        previousSecretUntil: new Date(clock().getTime() + secretOverlap),
    };
}

function typePatch(before: StoredExporter, type: ExportType): ExporterPatch {
    if (!before.legacy) {
        throw new ScanwireError('CONFLICT', 'Only a legacy exporter can hold a type other than investigation', { field: 'type' });
    }

    if (before.type !== 'investigation_legacy' || type !== 'investigation_legacy_and_library') {
        throw new ScanwireError(
            'CONFLICT',
            'The type of a legacy exporter changes once, from investigation_legacy to investigation_legacy_and_library, and never back',
            { field: 'type' },
        );
    }

    return { type, ifType: before.type };
}

async function requestTest(exporter: StoredExporter, { deliveries, clock, newId, onAccepted }: ExportersParts): Promise<string> {
    const now = clock();
    const body = eventBody(testEvent, { timestamp: now, webhook_id: exporter.id, webhook_name: exporter.name });
    const event = { id: newId(), kind: testEvent.name, body, createdAt: now };
    const [accepted] = await deliveries.accept([{ event, addressees: { exporterId: exporter.id } }]);
    onAccepted();
    return accepted?.deliveries[0] as string;
}

const LOOK_EVERY = 25;

/** Looks at the rows: whoever sends the test may be another process on another machine. */
async function awaited(deliveryId: string, patience: number, { deliveries, sleep }: ExportersParts): Promise<TestOutcome> {
    for (let waited = 0; waited < patience; waited += LOOK_EVERY) {
        const [attempt] = await deliveries.attempts(deliveryId);
        if (attempt?.finishedAt != null) {
            return { deliveryId, attempt };
        }

        await sleep(LOOK_EVERY);
    }

    return { deliveryId, attempt: null };
}

/** An exporter without what only the sender may see. */
function visible(exporter: StoredExporter): Exporter {
    const { sealedSecret, sealedPreviousSecret, previousSecretUntil, sealedHeaders, schedule, ...shown } = exporter;
    return shown;
}

/** What a secret of this exporter is sealed for. */
const secretContext = (exporterId: string): string => `exporter:${exporterId}`;

/** What the additional headers of this exporter are sealed for. */
const headersContext = (exporterId: string): string => `exporter:${exporterId}:headers`;

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
