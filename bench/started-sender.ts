import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Checkout } from './checkout.ts';
import { investigation } from './contenders/investigation.ts';
import { type Burst, publishMany } from './contenders/sender-server.ts';
import { background, memoryMiB, type ProcessOptions } from './processes.ts';
import type { SenderStore } from './sender-store.ts';
import { commandOn, ended, SERVE } from './served-deployment.ts';

/** A sender that runs. */
export interface StartedSender {
    readonly pid: number;
    publish(event: unknown): Promise<void>;
    /**
     * Publishes in a transaction that stays open for so many milliseconds more, or nothing in it for null, and resolves with when it was
     * committed, in microseconds.
     */
    publishInTransaction(event: unknown, open: number): Promise<number>;
    /** Publishes so many by itself, or gets them one in a request of 50 publishers, unless it is told how. */
    burst(count: number, how?: Burst): Promise<void>;
    /** Calls an operation of the admin console and resolves with its answer; of `serve`. */
    administer<Answer>(method: 'GET' | 'POST', path: string, input?: unknown): Promise<Answer>;
    /** Resolves when the outcome of everything that receivers have got is recorded. */
    recorded(): Promise<void>;
    /** The most memory that the process has held. */
    peakMiB(): Promise<number>;
    stop(): Promise<void>;
}

const UNLIMITED = { connections: 50, headersTimeout: 0, bodyTimeout: 0 };

/**
 * Starts a contender that is asked as `sender-server.ts` says.
 *
 * @param script Name of its file in `contenders/`.
 * @param bursts Whether it publishes bursts by itself, also those of an event a call.
 */
export async function contender(checkout: Checkout, script: string, options: ProcessOptions, bursts: boolean): Promise<StartedSender> {
    const process = await background(checkout, script, options);
    const connections = new Pool(`http://127.0.0.1:${process.firstLine}`, UNLIMITED);
    const publish = async (event: unknown): Promise<void> => {
        await ask(connections, 'POST', '/', event);
    };
    return {
        pid: process.pid,
        peakMiB: process.peakMiB,
        publish,
        publishInTransaction: async (event, open) => Number(await ask(connections, 'POST', `/in-transaction?open=${open}`, event)),
        administer: () => Promise.reject(new Error('Only serve has an admin console')),

        async burst(count, how = {}) {
            const itself = bursts || how.perCall !== undefined;
            await (itself
                ? ask(connections, 'POST', `/burst?count=${count}`, how)
                : publishMany(count, () => publish(investigation()), how));
        },

        async recorded() {
            await ask(connections, 'GET', '/recorded');
        },

        async stop() {
            await connections.close();
            await process.stop();
        },
    };
}

/** More than are on their way at once. An index gives the newest; a search for unfinished ones would walk the table. */
const NEWEST = 300;

/** Starts `scanwire serve` with exporters for these URLs; it is asked through the socket in its data folder. */
export async function served(checkout: Checkout, { folder, urls }: SenderStore, receivers: readonly string[]): Promise<StartedSender> {
    const data = join(folder, 'data');
    const command = commandOn(checkout, data, { ...urls });
    try {
        const child = await command.start(...SERVE);
        const pid = child.pid as number;
        const { socket } = JSON.parse(await readFile(join(data, 'server.json'), 'utf8')) as { socket: string };
        const connections = new Pool('http://scanwire', { ...UNLIMITED, connect: { socketPath: socket } });
        for (const url of receivers) {
            await ask(connections, 'POST', '/exporters', { url, start: true });
        }

        const publish = async (body: unknown): Promise<void> => {
            await ask(connections, 'POST', '/events/idr_investigation_created', { body });
        };
        return {
            pid,
            publish,
            administer: async (method, path, input) => JSON.parse(await ask(connections, method, path, input)),
            publishInTransaction: () => Promise.reject(new Error('Through serve nobody has a transaction of their own')),
            burst: (count, how) => publishMany(count, () => publish(investigation()), how),
            peakMiB: () => memoryMiB(pid, 'VmHWM'),

            async recorded() {
                while (JSON.parse(await ask(connections, 'GET', `/deliveries?limit=${NEWEST}`)).some(isUnfinished)) {
                    await sleep(20);
                }
            },

            async stop() {
                await connections.close();
                await ended(child, 'SIGTERM');
            },
        };
    } catch (error) {
        await command.end();
        throw error;
    }
}

function isUnfinished({ finishedAt }: { readonly finishedAt: string | null }): boolean {
    return finishedAt === null;
}

/** What is answered. @throws Error for everything but a success. */
export async function ask(server: Pool, method: 'GET' | 'POST', path: string, body?: unknown): Promise<string> {
    const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await server.request({ method, path, ...json });
    const text = await response.body.text();
    if (response.statusCode >= 300) {
        throw new Error(`${method} ${path} was answered ${response.statusCode}: ${text}`);
    }

    return text;
}
