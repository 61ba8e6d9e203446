import { addressRange } from '../../lib/address-range.ts';
import { digested } from '../../lib/content-digest.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { exportWorkspace } from '../../lib/inventory/export.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { hostAt, hostsPage, type NamedInventory, refuseUnnameable, rowsOf, shownWorkspace } from '../../lib/inventory/host-pages.ts';
import { DEFAULT_WORKSPACE, refuseComing, workspaceName } from '../../lib/inventory/resources.ts';
import type { ImportOrigin, InventoryStore } from '../../lib/inventory/store.ts';
import type { ListedAttempt } from '../../lib/webhooks/deliveries/attempt-lists.ts';
import type { Attempt } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { ChangedExporter, CreateOptions } from '../../lib/webhooks/exporters/exporter-operations.ts';
import type { TestOptions, TestResult } from '../../lib/webhooks/exporters/test-event.ts';
import type { AnsweredAttempt } from '../../lib/webhooks/outcomes/response-bodies.ts';
import { messagesFirst } from '../route-parts.ts';
import { withApiKeys } from './api-keys-finding.ts';
import { audited, type Caller } from './audit.ts';
import type { AttemptView, ImportedScan, Input, ListedAttemptView, OperationName, Output, TestedExporter, TestView } from './operations.ts';
import { owned } from './owned.ts';
import type { HostSystem, System } from './system.ts';

/** What performs each operation. */
export type Handlers = { readonly [Name in OperationName]: (input: Input<Name>) => Promise<Output<Name>> };

/** Does an operation. */
export type HandledOperation = <Name extends OperationName>(name: Name, input: Input<Name>) => Promise<Output<Name>>;

/** Does operations by their names. @throws ScanwireError `NOT_FOUND` for those of a part that the system does not have. */
export function performerOf(system: HostSystem, caller: Caller): HandledOperation {
    const handlers = cutHandlers(system, caller);
    return async (name, input) => {
        const handler = handlers[name];
        if (handler === undefined) {
            throw new ScanwireError('NOT_FOUND', `There is no operation ${name} here`);
        }

        return await audited(name, handler, system.audit, caller)(input);
    };
}

/** What each operation does for a caller, for the parts that the system has. */
export function handlersOf(system: System, caller: Caller): Handlers;
export function handlersOf(system: HostSystem, caller: Caller): Partial<Handlers>;
export function handlersOf(system: HostSystem, caller: Caller): Partial<Handlers> {
    const perform = performerOf(system, caller);
    const names = Object.keys(cutHandlers(system, caller)) as OperationName[];
    return Object.fromEntries(names.map((name) => [name, (input: Input<typeof name>) => perform(name, input)]));
}

function cutHandlers(system: HostSystem, { owner }: Caller): Partial<Handlers> {
    const handlers = knownHandlers.get(system) ?? newHandlers(system);
    knownHandlers.set(system, handlers);
    const { webhooks } = system;
    if (owner === undefined) {
        return handlers;
    }
    return webhooks === undefined ? {} : owned({ ...handlers, ...exporterHandlers(webhooks, { asOwner: true }) }, webhooks, owner);
}

/** They are the same for each request. */
const knownHandlers = new WeakMap<HostSystem, Partial<Handlers>>();

function newHandlers({ keys, webhooks, inventory, license, migrate, audit }: HostSystem): Partial<Handlers> {
    return {
        ...(keys && keyHandlers(keys)),
        ...(webhooks && { ...exporterHandlers(webhooks), ...deliveryHandlers(webhooks), ...doctorHandlers(webhooks, keys) }),
        ...(license && licenseHandlers(license)),
        ...(inventory && inventoryHandlers(inventory)),
        ...keyRingHandlers(keys, webhooks),
        ...(migrate && { migrate: async () => ({ applied: await migrate() }) }),
        ...(audit && { listAudit: (query: Input<'listAudit'>) => audit.list(query) }),
    };
}

function keyHandlers(keys: System['keys']): Partial<Handlers> {
    return {
        createKey: ({ name, ...options }) => keys.create(name, options),
        listKeys: () => keys.list(),
        revealKey: ({ id }) => keys.reveal(id),
        async revokeKey({ id }) {
            await keys.revoke(id);
            return { id, revoked: true };
        },
    };
}

function exporterHandlers({ exporters }: System['webhooks'], caller: CreateOptions = {}): Partial<Handlers> {
    async function start(id: string, options?: TestOptions): Promise<Output<'startExporter'>> {
        const started = await exporters.start(id, options);
        return { ...tested(started), held: started.held };
    }

    return {
        async createExporter({ start: starts = false, ...settings }) {
            const { exporter, secret, warnings } = await exporters.create(settings, caller);
            return { ...(starts ? await start(exporter.id) : exporter), secret, warnings };
        },
        listExporters: (query) => exporters.list(query),
        summarizeExporters: (query) => exporters.summaries(query),
        pageExporters: (query) => exporters.page(query),
        showExporter: ({ id, showUrl = false }) => exporters.show(id, { showUrl }),
        async updateExporter({ id, start: starts = false, wait, ...changes }) {
            const changed = await exporters.update(id, changes, { ...caller, wait });
            return starts ? { ...(await start(id, { wait })), warnings: changed.warnings } : tested(changed);
        },
        startExporter: ({ id, wait }) => start(id, { wait }),
        stopExporter: async ({ id }) => tested(await exporters.stop(id)),
        pauseExporter: ({ id }) => exporters.pause(id),
        resumeExporter: ({ id }) => exporters.resume(id),
        testExporter: async ({ id, wait }) => testView(await exporters.test(id, { wait })),
        explainExporter: ({ id, kind, body, ...options }) => exporters.explain(id, kind, body, options),
        previewExporter: ({ id, kind, body }) => exporters.preview(id, kind, body),
        previewDraft: ({ draft, kind, body }) => exporters.previewDraft(draft, kind, body),
        async removeExporter({ id }) {
            await exporters.remove(id);
            return { id, removed: true };
        },
    };
}

function deliveryHandlers({ publish, deliveries, events }: System['webhooks']): Partial<Handlers> {
    return {
        async publishEvent({ kind, body, ...options }) {
            const { eventId, deliveries: ids } = await publish(kind, body, options);
            await messagesFirst();
            return { eventId, deliveries: ids };
        },
        showEvent: ({ id }) => events.show(id),
        eraseEvent: ({ id }) => events.erase(id),
        listDeliveries: (query) => deliveries.list(query),
        countDeliveries: (filter) => deliveries.count(filter),
        listAttempts: async (query) => (await deliveries.attempts.list(query)).map(listedAttemptView),
        countAttempts: (filter) => deliveries.attempts.count(filter),
        showActivity: (query) => deliveries.activity(query),
        async showDelivery({ id }) {
            const delivery = await deliveries.show(id);
            return { ...delivery, history: delivery.history.map(attemptView) };
        },
        showMessage: ({ id }) => deliveries.message(id),
        replayDelivery: ({ id }) => deliveries.replay(id),
        ...(deliveries.discards !== false && { discardDelivery: ({ id }: Input<'discardDelivery'>) => deliveries.discard(id) }),
        async beginReplay({ dryRun = false, ...options }) {
            return dryRun ? { total: await deliveries.replays.count(options) } : await deliveries.replays.begin(options);
        },
        listReplays: () => deliveries.replays.list(),
        showReplay: ({ id }) => deliveries.replays.show(id),
        cancelReplay: ({ id }) => deliveries.replays.cancel(id),
    };
}

function doctorHandlers({ doctor: own }: System['webhooks'], keys: HostSystem['keys']): Partial<Handlers> {
    const doctor = own && withApiKeys(own, keys);
    return doctor === undefined ? {} : { diagnose: () => doctor(), diagnoseExporter: ({ id }) => doctor(id) };
}

/** First the keys, then the exporters; where a batch goes on names the part, then what that said. */
function keyRingHandlers(keys: HostSystem['keys'], webhooks: HostSystem['webhooks']): Partial<Handlers> {
    const parts = Object.entries({ keys: keys?.sealAnew, exporters: webhooks?.exporters.sealAnew });
    const [first, ...others] = parts.flatMap(([name, sealAnew]) => (sealAnew === undefined ? [] : [{ name, sealAnew }]));
    if (first === undefined) {
        return {};
    }

    return {
        async rotateKeyRing({ after = first.name }) {
            const [name, id = null] = after.split(':');
            const part = [first, ...others].find((one) => one.name === name);
            if (part === undefined) {
                throw new ScanwireError('INVALID_INPUT', 'After must be what the batch before has said', { field: 'after' });
            }

            const { next, ...done } = await part.sealAnew(id);
            const following = part === first ? (others[0]?.name ?? null) : null;
            return { ...done, next: next === null ? following : `${name}:${next}` };
        },
    };
}

function licenseHandlers(license: NonNullable<HostSystem['license']>): Partial<Handlers> {
    const { install, trust } = license;
    return {
        showLicense: () => license.inspect(),
        ...(install && { installLicense: ({ text }: Input<'installLicense'>) => install.call(license, text) }),
        ...(trust && { trustLicense: ({ text }: Input<'trustLicense'>) => trust.call(license, text) }),
    };
}

function inventoryHandlers(inventory: System['inventory']): Partial<Handlers> {
    return {
        async importScan({ workspace, replace = false, dryRun = false, ...scan }) {
            const { onProgress, onWarning } = scan;
            const name = workspaceName(workspace);
            if (isExported(inventory)) {
                await refuseUnnameable(inventory, name);
            }

            // A store that does not know it would take what is meant to go for what may stay.
            if (replace && inventory.replaces !== true) {
                throw new ScanwireError('INVALID_INPUT', 'This store cannot replace a workspace', { field: 'replace' });
            }

            if (dryRun && inventory.dryRuns !== true) {
                throw new ScanwireError('INVALID_INPUT', 'This store cannot say what an import would change', { field: 'dryRun' });
            }

            const { hosts, origin } = await hostsOf(scan);
            const options = { onProgress, onWarning, ...(replace && { replace }), ...(dryRun && { dryRun }), ...(origin && { origin }) };
            return inventory.importHosts(name, hosts, options);
        },
        ...(isExported(inventory) && {
            exportWorkspace: ({ workspace, format, ...options }: Input<'exportWorkspace'>) =>
                exportWorkspace(inventory, { workspace, format }, options),
        }),
        ...(isNamed(inventory) && readingHandlers(inventory)),
        ...removalHandlers(inventory),
        ...changeHandlers(inventory),
    };
}

type ReadScan = Pick<ImportedScan, 'source' | 'sha256' | 'signal' | 'isRequest' | 'onWarning'>;

/** The hosts of a scan, and what they come from where its digest is known. Its parsers are loaded by the first import, not by every host. */
async function hostsOf({
    source,
    sha256,
    signal,
    isRequest = false,
    onWarning,
}: ReadScan): Promise<{ readonly hosts: AsyncIterable<HostInput>; readonly origin?: ImportOrigin }> {
    const { readScan } = await import('../../lib/inventory/scan-files/read-scan.ts');
    if (sha256 === undefined) {
        return { hosts: readScan(source, { signal, isRequest, onWarning }) };
    }

    const bytes = digested(source, sha256);
    let warned = false;
    const warn = (message: string): void => {
        warned = true;
        onWarning?.(message);
    };
    return {
        hosts: readScan(bytes, { signal, isRequest, onWarning: warn }),
        origin: {
            // What a client sends may be refused where a file of one's own is not.
            id: `${isRequest ? 'request' : 'file'} ${sha256}`,
            arrived: () => bytes.arrived(signal),
            hasWarned: () => warned,
        },
    };
}

/** What shows all of it. */
function isExported(inventory: Partial<InventoryStore>): inventory is InventoryStore {
    return inventory.workspaces !== undefined && inventory.hosts !== undefined;
}

/** What shows parts of it, and all that is needed for that. */
function isNamed(inventory: Partial<InventoryStore>): inventory is NamedInventory {
    return inventory.workspaces !== undefined && inventory.hosts?.select !== undefined;
}

function readingHandlers(inventory: NamedInventory): Partial<Handlers> {
    return {
        listWorkspaces: () => rowsOf(inventory.workspaces.list([])),
        showWorkspace: ({ name }) => shownWorkspace(inventory, name),
        listHosts: (query) => hostsPage(inventory, query),
        showHost: ({ workspace, address }) => hostAt(inventory, workspace, address),
    };
}

function removalHandlers(inventory: System['inventory']): Partial<Handlers> {
    const all = inventory as Required<typeof inventory>;
    return {
        ...(inventory.expireHosts && {
            async expireHosts({ workspace, ...options }: Input<'expireHosts'>) {
                refuseComing(options.notSeenSince);
                return await all.expireHosts(workspaceName(workspace), options);
            },
        }),
        ...(inventory.removeHosts && {
            removeHosts: ({ workspace, address, dryRun = false }: Input<'removeHosts'>) =>
                all.removeHosts(workspaceName(workspace), { address: addressRange(address), dryRun }),
        }),
        ...(inventory.removeWorkspace && {
            async removeWorkspace({ name }: Input<'removeWorkspace'>) {
                const known = workspaceName(name);
                keepsDefault(known, 'only its hosts can be removed');
                return await all.removeWorkspace(known);
            },
        }),
    };
}

/** @throws ScanwireError `CONFLICT` for the workspace that is there from the start. */
function keepsDefault(name: string, why: string): void {
    if (name === DEFAULT_WORKSPACE) {
        throw new ScanwireError('CONFLICT', `The workspace ${name} receives what names no other: ${why}`, { field: 'name' });
    }
}

function changeHandlers(inventory: System['inventory']): Partial<Handlers> {
    const all = inventory as Required<typeof inventory>;
    return {
        ...(inventory.moveHosts && { moveHosts: ({ ids, to }: Input<'moveHosts'>) => all.moveHosts(ids, to) }),
        ...(inventory.updateWorkspace && {
            updateWorkspace: ({ name, ...changes }: Input<'updateWorkspace'>) => all.updateWorkspace(workspaceName(name), changes),
        }),
        ...(inventory.renameWorkspace && {
            async renameWorkspace({ name, to }: Input<'renameWorkspace'>) {
                const known = workspaceName(name);
                keepsDefault(known, 'its name stays');
                return await all.renameWorkspace(known, to);
            },
        }),
    };
}

function tested({ exporter, test, warnings }: ChangedExporter): TestedExporter {
    return { ...exporter, test: testView(test), warnings };
}

/** A test as the operations show it. */
export function testView({ deliveryId, attempt }: TestResult): TestView {
    return { deliveryId, attempt: attempt === null ? null : attemptView(attempt) };
}

const NO_OUTCOME = {
    status: null,
    code: null,
    detail: null,
    retryAfter: null,
    timings: null,
    address: null,
    fingerprint: null,
    certificate: null,
};

/** An attempt as the operations show it. */
export function attemptView({ responseBody, ...attempt }: AnsweredAttempt): AttemptView {
    return { ...viewOf(attempt), responseBody };
}

function listedAttemptView({ id, deliveryId, eventId, kind, exporterId, ...attempt }: ListedAttempt): ListedAttemptView {
    return { id, deliveryId, eventId, kind, exporterId, ...viewOf(attempt) };
}

function viewOf({ number, startedAt, finishedAt, outcome, late }: Attempt): Omit<AttemptView, 'responseBody'> {
    return { number, startedAt, finishedAt, ...NO_OUTCOME, ...outcome, late };
}
