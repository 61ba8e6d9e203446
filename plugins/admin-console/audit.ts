import type { AuditTrail } from '../../lib/audit/audit-trail.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { Input, OperationName, Output } from './operations.ts';
import { LedFromElsewhere } from './request-site.ts';

/** Who asks for operations. */
export interface Caller {
    /** As the trail names them. */
    readonly actor: string;
    /** Whose exporters and deliveries alone there are for them; absent for those of all. */
    readonly owner?: string;
    /** Whether a person asks, by a page. */
    readonly byHand?: true;
    /** Whether another site has led the browser of the caller here: nothing comes into the trail by it. */
    readonly isLedHere?: boolean;
}

/** Whoever runs commands on the data folder: it is theirs. */
export const OPERATOR: Caller = { actor: 'operator' };

/** How an operation comes into the trail. */
interface Rule<Name extends OperationName> {
    /** Which calls do; all by default. */
    readonly when?: (input: Input<Name>, caller: Caller) => boolean;
    /** What it is done to. */
    readonly subject?: (input: Input<Name>) => string;
    /** The same where it is made by the operation. */
    readonly made?: (output: Output<Name>) => string | null;
    /** Once it is done: it makes the trail itself. */
    readonly afterwards?: true;
}

const byId = { subject: ({ id }: { readonly id: string }): string => id };
const ofWorkspace = { subject: ({ workspace }: { readonly workspace: string }): string => workspace };
const idOf = ({ id }: { readonly id: string }): string => id;
const forReal = ({ dryRun }: { readonly dryRun?: boolean | undefined }): boolean => dryRun !== true;

/** Of every operation whether it changes something, or shows what is secret otherwise; null for those that only read. */
const RULES: { readonly [Name in OperationName]: Rule<Name> | null } = {
    createKey: { made: idOf },
    listKeys: null,
    revealKey: byId,
    revokeKey: byId,
    createExporter: { made: idOf },
    listExporters: null,
    summarizeExporters: null,
    pageExporters: null,
    showExporter: { ...byId, when: ({ showUrl }) => showUrl === true },
    updateExporter: byId,
    startExporter: byId,
    stopExporter: byId,
    pauseExporter: byId,
    resumeExporter: byId,
    testExporter: byId,
    removeExporter: byId,
    explainExporter: null,
    previewExporter: null,
    previewDraft: null,
    // What passes through, at any rate: the event is kept itself. A sample one is somebody's doing.
    publishEvent: { when: (_, { byHand }) => byHand === true, made: ({ eventId }) => eventId },
    showEvent: null,
    eraseEvent: byId,
    listDeliveries: null,
    countDeliveries: null,
    listAttempts: null,
    countAttempts: null,
    showActivity: null,
    showDelivery: null,
    showMessage: null,
    replayDelivery: byId,
    discardDelivery: byId,
    beginReplay: { when: forReal, subject: ({ exporterId }) => exporterId, made: (answer) => ('id' in answer ? answer.id : null) },
    listReplays: null,
    showReplay: null,
    cancelReplay: byId,
    diagnose: null,
    diagnoseExporter: byId,
    showLicense: null,
    installLicense: {},
    trustLicense: {},
    importScan: { ...ofWorkspace, when: forReal },
    exportWorkspace: null,
    listWorkspaces: null,
    showWorkspace: null,
    updateWorkspace: { subject: ({ name }) => name },
    // Whoever looks for what is called so now finds here what it was, and the other way round.
    renameWorkspace: { subject: ({ name, to }) => `${name} → ${to}` },
    removeWorkspace: { subject: ({ name }) => name },
    listHosts: null,
    showHost: null,
    moveHosts: { subject: ({ to }) => to },
    removeHosts: { ...ofWorkspace, when: forReal },
    expireHosts: { ...ofWorkspace, when: forReal },
    rotateKeyRing: {},
    migrate: { afterwards: true },
    listAudit: null,
};

type Handler<Name extends OperationName> = (input: Input<Name>) => Promise<Output<Name>>;

/**
 * An operation of a caller, of whom the trail tells where there is one.
 *
 * @throws LedFromElsewhere for what would be in the trail, where another site has led there.
 */
export function audited<Name extends OperationName>(
    operation: Name,
    handler: Handler<Name>,
    trail: AuditTrail | undefined,
    caller: Caller,
): Handler<Name> {
    const rule: Rule<Name> | null = RULES[operation];
    const { isLedHere = false } = caller;
    if (rule === null || (trail === undefined && !isLedHere)) {
        return handler;
    }

    const { when = () => true, subject = () => null, made = () => null, afterwards } = rule;
    return async (input) => {
        if (!when(input, caller)) {
            return await handler(input);
        }
        if (trail === undefined || isLedHere) {
            throw new LedFromElsewhere();
        }
        const deed = { actor: caller.actor, operation, subject: subject(input), made };
        if (afterwards === true) {
            const output = await handler(input);
            return await trail.record(deed, async () => output);
        }
        return await trail.record(deed, () => handler(input));
    };
}

const MAX_NAME = 200;

/** What the application says of a caller. @throws ScanwireError `MISCONFIGURED` for what is no name: nobody is to be taken for somebody else. */
export function named(name: unknown, field: 'actor' | 'owner'): string {
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) {
        const message = `admin-console options: ${field} must answer with a text of 1 to ${MAX_NAME} characters`;
        throw new ScanwireError('MISCONFIGURED', message, { field });
    }

    return name;
}
