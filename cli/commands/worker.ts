import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import { jsonText, printable } from '../../lib/printable.ts';
import { type DeploymentSettings, storedSettings } from '../../lib/webhooks/deployment-settings.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { logLines, type WebhookEvent } from '../../lib/webhooks/observing/emitted-events.ts';
import { CONCURRENCY, drainTimeoutFor, drainWarning } from '../../lib/webhooks/options.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { type Call, performing } from '../command.ts';
import { dataFolder } from '../data-folder.ts';
import { receiversIn, webhooksOver } from '../deployment.ts';
import { type HostOptions, hostOptions } from '../host-options.ts';
import { addMetrics, type MetricsAddress, startMetrics } from '../metrics-server.ts';
import { addConfig, addPooled, addProcessName, repeated, wholeNumber } from '../option-values.ts';
import { errorLog } from '../output/errors.ts';
import { existingKeyRing } from '../stored-key-ring.ts';
import { openPostgresQueue, openRedisQueue, openStores, type Stores } from '../stores.ts';
import { addDrainTimeout, type Running, untilStopped } from '../until-stopped.ts';

export function define(self: Command): void {
    performing(self, worker);
    self.requiredOption('--collector <name>', 'collector to send for, repeatable', repeated).option(
        '--concurrency <n>',
        'attempts at once, for each of its collectors',
        wholeNumber(1, CONCURRENCY.max),
        CONCURRENCY.byDefault,
    );
    addConfig(self);
    addMetrics(self);
    addPooled(self);
    addProcessName(self);
    addDrainTimeout(self);
}

interface WorkerOptions {
    readonly collector: readonly string[];
    readonly concurrency: number;
    readonly config?: string;
    readonly metrics?: MetricsAddress;
    readonly pooled?: boolean;
    readonly processName?: string;
    /** Seconds. */
    readonly drainTimeout: number;
}

/**
 * Sends for collectors until it is told to stop, and then finishes what it has in hand. When the host changes its settings, it finishes
 * as well, and begins again with the new ones.
 *
 * @throws ScanwireError `MISCONFIGURED` without `DATABASE_URL`, a key ring or `REDIS_URL` where they are needed, and for settings other
 *     than the host's.
 */
async function worker({ data, options, json }: Call): Promise<undefined> {
    const {
        collector: collectors,
        concurrency,
        config: file,
        metrics: address,
        pooled = false,
        processName,
        drainTimeout,
    } = options as unknown as WorkerOptions;
    const named = processName === undefined ? {} : { processName };
    const config = file === undefined ? null : await hostOptions(file);
    const url = config?.stores === undefined ? required('DATABASE_URL') : undefined;
    const folder = dataFolder(data);
    const keyRing = config?.keyRing ?? (await existingKeyRing(folder, process.env));
    const onError = errorLog();

    await untilStopped(drainTimeout, async (running) => {
        const database = url === undefined ? null : await openStores(folder, { url, pooled }, onError);
        running.undo.push(async () => database?.pool.end());
        const stores = config?.stores ?? (database as Stores).webhooks;

        let sending: Webhooks | null = null;
        const metrics = address === undefined ? null : await startMetrics(address, { source: () => sending, onError });
        running.undo.push(async () => metrics?.stop());
        const lineOf = logLines();
        const onEvent = (event: WebhookEvent): void => {
            metrics?.hear(event);
            const line = lineOf(event);
            if (line !== null) {
                onError(line.text);
            }
        };

        await reloading(running, onError, async (onOutdated) => {
            const deployment = await stores.settings.read();
            const stored = storedSettings(deployment);
            const ownQueue = config?.queue === undefined ? await workerQueue(database, stored, onError) : null;
            const queue = ownQueue ?? (config as Required<HostOptions>).queue;
            const parts = { stores, keyRing, queue, config, receivers: receiversIn(process.env) };
            const own = await webhooksOver(parts, stored, { role: 'worker', onError, onOutdated, onEvent, ...named });
            sending = own;
            let ended: Promise<void> | undefined;
            return {
                async begin() {
                    const warning = drainWarning(drainTimeout * 1000, stored.attemptTimeout);
                    if (warning !== null) {
                        onError(warning);
                    }
                    await own.start();
                    await own.work(collectors, { concurrency });
                    const ready = { collectors, concurrency, pid: process.pid, generation: deployment.generation };
                    const text = `Sending for ${collectors.join(', ')}, ${concurrency} at once each`;
                    process.stdout.write(`${json ? jsonText(ready) : printable(text)}\n`);
                },
                reloadTimeout: Math.max(drainTimeout * 1000, drainTimeoutFor(stored.attemptTimeout)),
                close(timeout) {
                    // The second of two brings the first one's end forward.
                    const closed = own.close({ timeout });
                    ended ??= closed.then(() => ownQueue?.close());
                    return ended;
                },
            };
        });
    });
}

/** The webhook exporter of a worker between two changes of the settings. */
interface Sending {
    begin(): Promise<void>;
    /** Milliseconds that it has to finish what it holds when it begins again: no claim holds longer. */
    readonly reloadTimeout: number;
    /** Within so many milliseconds, or what is left of those that an earlier call has given. */
    close(timeout: number): Promise<void>;
}

/** Milliseconds between the tries to begin again while a server is away. */
const RETRY_DELAY = 1_000;

/** Begins again whenever the settings are outdated, until the process is stopped. */
async function reloading(
    { undo, stopped, isStopping }: Running,
    onError: (error: unknown) => void,
    next: (onOutdated: () => void) => Promise<Sending>,
): Promise<void> {
    let sending: Sending | undefined;
    undo.push(async (timeout) => sending?.close(timeout));
    for (let first = true; !isStopping(); ) {
        const outdated = newSignal();
        try {
            sending = await next(outdated.give);
            await sending.begin();
            first = false;
            await Promise.race([outdated.given, stopped]);
        } catch (error) {
            if (first || !(error instanceof ScanwireError && error.code === 'UNAVAILABLE')) {
                throw error;
            }

            onError(error);
            await Promise.race([sleep(RETRY_DELAY), stopped]);
        }

        if (!isStopping()) {
            await sending?.close(sending.reloadTimeout);
        }
    }
}

function newSignal(): { readonly given: Promise<void>; readonly give: () => void } {
    let give = (): void => undefined;
    const given = new Promise<void>((resolve) => {
        give = resolve;
    });
    return { given, give };
}

/** Where the host's queue is, as far as this machine can reach it. */
async function workerQueue(database: Stores | null, stored: DeploymentSettings, onError: (error: Error) => void): Promise<DeliveryQueue> {
    return database !== null && stored.queue === 'PostgreSQL' && process.env.REDIS_URL === undefined
        ? await openPostgresQueue(database)
        : await openRedisQueue(required('REDIS_URL'), onError, stored.prefix);
}

function required(name: string): string {
    const value = process.env[name];
    if (value === undefined) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `${name} is not set: a worker shares the database of its server, and the queue, so it needs DATABASE_URL, and REDIS_URL where the queue is on Redis`,
            { field: name },
        );
    }

    return value;
}
