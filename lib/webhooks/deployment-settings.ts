import { isDeepStrictEqual } from 'node:util';
import type { EgressGuard, EgressPolicy } from '../egress/guard.ts';
import { ScanwireError } from '../errors.ts';
import type { DeliveryQueue, QueueAddress } from './dispatching/delivery-queue.ts';
import type { EventKind } from './events/event-kinds.ts';
import { type KeptOwnerSettings, keptOwnerSettings, type OwnerSettings } from './exporters/owner-limits.ts';
import type { Tracing, TracingOptions } from './observing/tracing.ts';
import type { Sender, SharedLimits } from './sending/http-sender.ts';
import { OWNER_SETTINGS, ofSending } from './setting-values.ts';

/**
 * Settings that all processes of a deployment must have in common: they decide what is on the wire and how it is retried. Plain JSON, nothing
 * secret. What a process cannot know, for example the limits of a sender that somebody else has made, is absent. {@link SharedLimits} are the
 * limits of the sender that receivers notice; {@link QueueAddress} says where the jobs are. {@link KeptOwnerSettings} decide nothing of what is sent: they
 * are for those who manage exporters, a worker needs none of them, and they may change while processes send.
 */
export interface DeploymentSettings extends Partial<SharedLimits>, Partial<QueueAddress>, KeptOwnerSettings {
    readonly vendor: string;
    /** Names of the host's own event kinds, where it has any. A worker needs none of them. */
    readonly kinds?: readonly string[];
    readonly window: number;
    /** Attempts a second of all exporters together, where there is a limit. */
    readonly rate?: number;
    readonly breakerAfter: number;
    /** Milliseconds for which an exporter may fail before it is stopped. */
    readonly stopAfter: number;
    readonly maxBodyBytes: number;
    readonly attemptTimeout: number;
    /** False where nothing of what receivers answer is kept; absent where it is. */
    readonly keepResponses?: false;
    readonly egress?: EgressPolicy;
    /** Where what is published and sent has spans. */
    readonly tracing?: Required<TracingOptions>;
}

/** All processes that share one store and its settings. */
export interface Deployment {
    /** UUID, made once; it keeps the deployment's jobs apart from those of others on the same queue server. */
    readonly id: string;
    /** How often the settings of the deployment have changed, other than in what owners may have. */
    readonly generation: number;
    /** Null until a host has started. */
    readonly settings: DeploymentSettings | null;
}

/** Keeps the settings of the deployment. Rejects with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface SettingsStore {
    /**
     * The database that holds the rows, for example the pool, compared by identity: stores in different databases are refused when they are given
     * together. Absent where that cannot be known.
     */
    readonly database?: object;
    /** The deployment, which begins when it is first asked for. */
    read(): Promise<Deployment>;
    /**
     * Stores settings in place of those that were there; the generation rises by one if they differ in anything but `maxExportersPerOwner` and `owners`.
     * Resolves with the deployment as it is after that.
     */
    declare(settings: DeploymentSettings): Promise<Deployment>;
}

/**
 * What a process is: a `host` says what the settings of its deployment are when it starts; a `worker` sends with those that a host has
 * stored, or refuses to start.
 */
export type Role = 'host' | 'worker';

/** The options of a process from which the settings of its deployment are made. */
interface Declared
    extends Pick<DeploymentSettings, 'vendor' | 'window' | 'breakerAfter' | 'stopAfter' | 'maxBodyBytes'>,
        Required<OwnerSettings> {
    readonly rate: number | null;
    readonly keepResponses: boolean;
    readonly kinds: readonly EventKind[];
    readonly sender: Pick<Sender, 'attemptTimeout' | 'limits'>;
    readonly guard: Pick<EgressGuard, 'allow' | 'owners'>;
    readonly tracing: Pick<Tracing, 'options'> | null;
}

interface Parts extends Declared {
    readonly settings: SettingsStore;
    readonly queue: Pick<DeliveryQueue, 'address'>;
    readonly onError: (error: Error) => void;
}

/** A process among those that share its deployment's settings. */
export interface Membership {
    /**
     * Joins the deployment. A host stores the settings of this process; a worker makes sure that its own are those that are stored. Until the
     * process leaves, a repeated call does nothing, unless a process that has joined as a worker joins as a host.
     *
     * @throws ScanwireError `MISCONFIGURED` for a worker before its host, or with other settings, each with both values; `UNAVAILABLE`.
     */
    join(role: Role): Promise<void>;
    /** Generation of the settings that this process has joined with; 0 before it has joined. */
    generation(): number;
    /** Checks now whether the settings have changed, which is also done every two seconds. */
    checkSettings(): Promise<void>;
    /** Notes that a moment ago the settings were those of this process, as what was handed out tells: the next check of every two seconds is spared. */
    settingsHeld(): void;
    leave(): void;
}

const CHECK_EVERY = 2_000;

/** @param outdated Called once when another process has changed the settings since this one joined. This process is no member any more then. */
export function membership(parts: Parts, outdated: () => void): Membership {
    const { settings, queue, onError } = parts;
    let generation = 0;
    let joined: DeploymentSettings | null = null;
    let asHost = false;
    let checking: Promise<void> | null = null;
    let timer: NodeJS.Timeout | undefined;
    let heldSinceCheck = false;

    async function compare(): Promise<void> {
        const now = joined === null ? null : await settings.read();
        if (joined !== null && now !== null && now.generation !== generation) {
            if (now.settings !== null && changesOwnersOnly(joined, now.settings)) {
                ({ generation, settings: joined } = now);
                return;
            }
            const how = howChanged(ofSending(joined), ofSending(now.settings ?? {}));
            leave();
            onError(new ScanwireError('CONFLICT', `Cannot go on sending here: another process has changed the settings${how}`));
            outdated();
        }
    }

    function checkSettings(): Promise<void> {
        checking ??= compare()
            .catch(onError)
            .finally(() => {
                checking = null;
            });
        return checking;
    }

    function checkUnlessHeld(): void {
        if (!heldSinceCheck) {
            void checkSettings();
        }
        heldSinceCheck = false;
    }

    function leave(): void {
        clearInterval(timer);
        joined = null;
    }

    return {
        generation: () => generation,
        checkSettings,
        leave,

        settingsHeld() {
            heldSinceCheck = true;
        },

        async join(role) {
            if (joined !== null && (asHost || role === 'worker')) {
                return;
            }

            const found = await settings.read();
            const own = settingsOf(parts, queue.address?.(found.id));
            if (role === 'worker') {
                assertAgrees(ofSending(own), found.settings);
            }
            const deployment = role === 'host' ? await settings.declare(own) : found;
            generation = deployment.generation;
            // A worker may know fewer settings than its host has stored; later checks have to compare with the stored ones.
            joined = deployment.settings ?? own;
            asHost = role === 'host';
            clearInterval(timer);
            timer = setInterval(checkUnlessHeld, CHECK_EVERY);
            timer.unref();
        },
    };
}

/**
 * Makes sure, as a worker does when it joins, that the settings of a process are those that a host has stored; of one that manages exporters, or publishes, also
 * the kinds and what owners may have. Where the queue is makes no difference to a process that puts nothing into it.
 *
 * @throws ScanwireError `MISCONFIGURED`.
 */
export function assertSettingsOfHost(parts: Declared, stored: DeploymentSettings | null, role: Role): void {
    const own = settingsOf(parts);
    role === 'worker' ? assertAgrees(ofSending(own), stored) : assertAgrees(own, stored, [...SAID_BY_ABSENCE, 'kinds', ...OWNER_SETTINGS]);
}

function settingsOf(
    { vendor, kinds, window, rate, breakerAfter, stopAfter, maxBodyBytes, keepResponses, sender, guard, tracing, ...owners }: Declared,
    address?: QueueAddress,
) {
    const { limits, attemptTimeout } = sender;
    const own: DeploymentSettings = {
        vendor,
        ...(kinds.length > 0 && { kinds: kinds.map(({ name }) => name).toSorted() }),
        window,
        ...(rate !== null && { rate }),
        breakerAfter,
        stopAfter,
        maxBodyBytes,
        ...limits,
        attemptTimeout,
        ...(!keepResponses && { keepResponses }),
        ...(guard.allow !== undefined && { egress: policyOf(guard.allow, guard.owners) }),
        ...(tracing !== null && { tracing: tracing.options }),
        ...keptOwnerSettings(owners),
        ...address,
    };
    return own;
}

/** The receivers that a guard allows, sorted, so that the order in which they were given makes no difference. */
function policyOf(allow: readonly string[], owners?: EgressGuard['owners']): EgressPolicy {
    const sorted = (entries: readonly string[]): readonly string[] => [...new Set(entries)].toSorted();
    const ofOwners = Object.entries(owners ?? {}).map(([owner, own]) => [owner, sorted(own)] as const);
    return { allow: sorted(allow), ...(ofOwners.length > 0 && { owners: Object.fromEntries(ofOwners) }) };
}

/** What a host has stored. @throws ScanwireError `MISCONFIGURED` before that. */
export function storedSettings({ settings }: Pick<Deployment, 'settings'>): DeploymentSettings {
    if (settings === null) {
        throw new ScanwireError('MISCONFIGURED', 'No host has stored its settings yet: start the host first');
    }

    return settings;
}

type Known = Partial<DeploymentSettings>;
type Name = keyof DeploymentSettings;

/** Settings whose absence has a meaning: without a rate there is no limit, and without `keepResponses` answers of receivers are kept. */
const SAID_BY_ABSENCE: readonly Name[] = ['rate', 'keepResponses'];

/** @param saidByAbsence In these both must agree, also where one of them has none. */
function assertAgrees(own: Known, stored: DeploymentSettings | null, saidByAbsence = SAID_BY_ABSENCE): void {
    const settings = storedSettings({ settings: stored });
    // Without tracing no `traceparent` goes out; which process sends is to make no difference.
    const names = new Set([...saidByAbsence, 'tracing', ...Object.keys(own)] as Name[]);
    // A worker may choose what its host has not set.
    const different = [...names].filter(
        (name) => (settings[name] !== undefined || saidByAbsence.includes(name)) && differs(own, settings, name),
    );
    const [field] = different;
    if (field !== undefined) {
        const message = `Settings must be those of the host: ${shown(own, settings, different)}`;
        throw new ScanwireError('MISCONFIGURED', message, { field });
    }
}

/** As a store may tell that counts these too, such as that of the version before. */
function changesOwnersOnly(joined: Known, now: Known): boolean {
    return !isDeepStrictEqual(joined, now) && isDeepStrictEqual(ofSending(joined), ofSending(now));
}

function howChanged(joined: Known, now: Known): string {
    const names = [...new Set([...Object.keys(joined), ...Object.keys(now)])] as Name[];
    const different = names.filter((name) => differs(joined, now, name));
    return different.length === 0 ? ', and changed them back' : ` (${shown(joined, now, different)})`;
}

function differs(here: Known, stored: Known, name: Name): boolean {
    return !isDeepStrictEqual(here[name], stored[name]);
}

function shown(here: Known, stored: Known, names: readonly Name[]): string {
    const text = (value: unknown): string => (value === undefined ? 'not set' : JSON.stringify(value));
    return names.map((name) => `${name} is ${text(here[name])} here and ${text(stored[name])} in the store`).join(', ');
}
