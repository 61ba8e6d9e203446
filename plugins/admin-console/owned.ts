import { ScanwireError } from '../../lib/errors.ts';
import { attemptOf } from '../../lib/webhooks/deliveries/attempt-lists.ts';
import type { DeliveryFilter } from '../../lib/webhooks/deliveries/deliveries.ts';
import type { Delivery } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay } from '../../lib/webhooks/deliveries/replays.ts';
import type { Exporter } from '../../lib/webhooks/exporters/exporter.ts';
import { storeRefusals } from '../../lib/webhooks/store-refusals.ts';
import type { Handlers } from './handlers.ts';
import type { OperationName } from './operations.ts';
import type { System } from './system.ts';

/*
 * The operations of an owner: those of the list below, each so cut that nothing of another owner is seen, counted or changed. What is another's
 * is answered as what does not exist: it is looked for first, whatever else the input says.
 */

/** What is an owner's. */
class Owned {
    readonly owner: string;
    readonly #webhooks: System['webhooks'];

    constructor(webhooks: System['webhooks'], owner: string) {
        this.#webhooks = webhooks;
        this.owner = owner;
    }

    async exporterIds(): Promise<readonly string[]> {
        const own = await this.#webhooks.exporters.summaries({ owner: this.owner });
        return own.map(({ id }) => id);
    }

    /** @throws ScanwireError `NOT_FOUND`. */
    async exporter(id: string): Promise<Exporter> {
        const found = await this.#webhooks.exporters.get(id);
        if (found.owner !== this.owner) {
            throw storeRefusals.unknownExporter();
        }
        return found;
    }

    /** @throws ScanwireError `NOT_FOUND`. */
    async assertDelivery(id: string): Promise<void> {
        if (!(await this.#has(await this.#webhooks.deliveries.show(id)))) {
            throw storeRefusals.unknownDelivery();
        }
    }

    /** One of which there is a delivery to it. @throws ScanwireError `NOT_FOUND`. */
    async assertEvent(eventId: string): Promise<void> {
        const exporterIds = await this.exporterIds();
        if ((await this.#webhooks.deliveries.list({ eventId, exporterIds, limit: 1 })).length === 0) {
            throw storeRefusals.unknownEvent();
        }
    }

    async replays(): Promise<readonly Replay[]> {
        return await this.#webhooks.deliveries.replays.list(await this.exporterIds());
    }

    /** @throws ScanwireError `NOT_FOUND`. */
    async assertReplay(id: string): Promise<void> {
        if (!(await this.#has(await this.#webhooks.deliveries.replays.show(id)))) {
            throw storeRefusals.unknownReplay();
        }
    }

    /** None where it is to go on behind a delivery that is not theirs: that would tell that there is one. */
    async exporterIdsBehind({ after }: Pick<DeliveryFilter, 'after'>): Promise<readonly string[]> {
        const exporterIds = await this.exporterIds();
        if (after === undefined) {
            return exporterIds;
        }

        try {
            await this.assertDelivery(after);
            return exporterIds;
        } catch (error) {
            if (error instanceof ScanwireError && error.code === 'NOT_FOUND') {
                return [];
            }
            throw error;
        }
    }

    async exporterIdsBehindAttempt({ after }: Pick<DeliveryFilter, 'after'>): Promise<readonly string[]> {
        const deliveryId = after === undefined ? undefined : attemptOf(after)?.deliveryId;
        return await this.exporterIdsBehind(deliveryId === undefined ? {} : { after: deliveryId });
    }

    async #has({ exporterId }: Pick<Delivery | Replay, 'exporterId'>): Promise<boolean> {
        return (await this.exporterIds()).includes(exporterId);
    }
}

type Cut<Name extends OperationName> = (handler: Handlers[Name], own: Owned) => Handlers[Name];

/** Does the operation to an exporter of the owner. */
const toExporter =
    <Input extends { readonly id: string }, Output>(handler: (input: Input) => Promise<Output>, own: Owned) =>
    async (input: Input): Promise<Output> => {
        await own.exporter(input.id);
        return await handler(input);
    };

const toDelivery =
    <Input extends { readonly id: string }, Output>(handler: (input: Input) => Promise<Output>, own: Owned) =>
    async (input: Input): Promise<Output> => {
        await own.assertDelivery(input.id);
        return await handler(input);
    };

const toReplay =
    <Input extends { readonly id: string }, Output>(handler: (input: Input) => Promise<Output>, own: Owned) =>
    async (input: Input): Promise<Output> => {
        await own.assertReplay(input.id);
        return await handler(input);
    };

/** How each operation is cut; null for those that an owner does not have, and for those whose reach is that of all owners. */
const CUTS: { readonly [Name in OperationName]: Cut<Name> | null } = {
    createKey: null,
    listKeys: null,
    revealKey: null,
    revokeKey: null,
    createExporter:
        (create, { owner }) =>
        (input) =>
            create({ ...input, owner }),
    listExporters:
        (list, { owner }) =>
        (query) =>
            list({ ...query, owner }),
    summarizeExporters:
        (summarize, { owner }) =>
        (query) =>
            summarize({ ...query, owner }),
    pageExporters:
        (page, { owner }) =>
        (query) =>
            page({ ...query, owner }),
    showExporter: toExporter,
    // Who asks for another owner is refused, and so is what comes after the operator has given it to one.
    updateExporter: (update, own) => toExporter((input) => update({ owner: own.owner, ...input }), own),
    startExporter: toExporter,
    stopExporter: toExporter,
    pauseExporter: toExporter,
    resumeExporter: toExporter,
    testExporter: toExporter,
    removeExporter: toExporter,
    explainExporter: (explain, own) => toExporter((input) => explain({ ...input, owner: own.owner }), own),
    previewExporter: toExporter,
    previewDraft: (preview, own) => async (input) => {
        if (input.draft.id !== undefined) {
            await own.exporter(input.draft.id);
        }
        return await preview({ ...input, draft: { ...input.draft, owner: own.owner } });
    },
    // It would go to exporters of all as well.
    publishEvent: null,
    showEvent: (show, own) => async (input) => {
        await own.assertEvent(input.id);
        return await show(input);
    },
    // It ends what others get of the event.
    eraseEvent: null,
    listDeliveries: (list, own) => async (query) => await list({ ...query, exporterIds: await own.exporterIdsBehind(query) }),
    countDeliveries: (count, own) => async (filter) => await count({ ...filter, exporterIds: await own.exporterIdsBehind(filter) }),
    listAttempts: (list, own) => async (query) => await list({ ...query, exporterIds: await own.exporterIdsBehindAttempt(query) }),
    countAttempts: (count, own) => async (filter) => await count({ ...filter, exporterIds: await own.exporterIdsBehindAttempt(filter) }),
    showActivity:
        (show, own) =>
        async ({ exporterId, ...query }) => {
            const exporterIds = await own.exporterIds();
            return await show({ ...query, exporterIds: exporterIds.filter((id) => (exporterId ?? id) === id) });
        },
    showDelivery: toDelivery,
    showMessage: toDelivery,
    replayDelivery: toDelivery,
    discardDelivery: toDelivery,
    beginReplay: (begin, own) => async (input) => {
        await own.exporter(input.exporterId);
        return await begin(input);
    },
    listReplays: (_, own) => () => own.replays(),
    showReplay: toReplay,
    cancelReplay: toReplay,
    // They count what is there of all.
    diagnose: null,
    diagnoseExporter: null,
    showLicense: null,
    installLicense: null,
    trustLicense: null,
    importScan: null,
    exportWorkspace: null,
    listWorkspaces: null,
    showWorkspace: null,
    updateWorkspace: null,
    renameWorkspace: null,
    removeWorkspace: null,
    listHosts: null,
    showHost: null,
    moveHosts: null,
    removeHosts: null,
    expireHosts: null,
    rotateKeyRing: null,
    migrate: null,
    listAudit: null,
};

/** The operations of an owner. Whatever is not on the list of this file is none of them. */
export function owned(handlers: Partial<Handlers>, webhooks: System['webhooks'], owner: string): Partial<Handlers> {
    const own = new Owned(webhooks, owner);
    function cut<Name extends OperationName>(name: Name): readonly (readonly [Name, Handlers[Name]])[] {
        const rule: Cut<Name> | null = CUTS[name];
        const handler = handlers[name];
        return rule === null || handler === undefined ? [] : [[name, rule(handler as Handlers[Name], own)]];
    }

    return Object.fromEntries((Object.keys(CUTS) as OperationName[]).flatMap((name) => cut(name)));
}
