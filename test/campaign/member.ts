import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { within } from '../../lib/within.ts';
import { nameServer } from '../support/name-server.ts';
import { QUICK_NODE } from '../support/scanwire.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import type { EngineSettings } from './engine.ts';

/** A process of the deployment, started again whenever it has ended, as a supervisor of services does. */
export interface Member {
    readonly name: string;
    readonly role: 'host' | 'worker';
    /** Its own ways to the servers. */
    readonly postgres: TcpProxy;
    readonly redis: TcpProxy;
    /** What went wrong with the process itself: it ended unasked, or did not end when asked. */
    readonly troubles: readonly string[];
    /** The loopback address to which it sends since its last start. */
    address(): string;
    isReady(): boolean;
    /** Whether its name server answers. */
    answerNames(answers: boolean): void;
    send(message: object): void;
    signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
    /** SIGKILL; started again after so many milliseconds. */
    kill(restartAfter: number): Promise<void>;
    /** SIGTERM; started again after so many milliseconds. */
    terminate(restartAfter: number): Promise<void>;
    /** SIGTERM; started again at once, from then on as the version of this checkout. */
    upgrade(): Promise<void>;
    /** SIGTERM, and no start any more. */
    end(): Promise<void>;
    /** SIGKILL if it is still there, no start any more, and its ways to the servers are closed. */
    close(): Promise<void>;
}

export interface MemberOptions {
    /** From 0. */
    readonly index: number;
    readonly role: Member['role'];
    readonly folder: string;
    readonly servers: { readonly databaseUrl: string; readonly redisUrl: string };
    readonly settings: Pick<EngineSettings, 'sealingKey' | 'accepted' | 'ordered'>;
    /** The compiled checkout whose version it is until it is upgraded; this one by default. */
    readonly version?: string | undefined;
}

/** Its receivers' name, which each name server answers with the process's own address. */
export const RECEIVER_NAME = 'receiver.example.com';

/** A process that ends by itself at its start is started again after so many milliseconds. */
const RESTART_AFTER = 500;

/** How long a process may take to end after SIGTERM, in milliseconds. */
const END_WITHIN = 25_000;

/** Short, so that a silent name server is noticed. Seconds. */
const TTL = 2;

/** Starts it; it is ready later. */
export async function member({ index, role, folder, servers, settings, version }: MemberOptions): Promise<Member> {
    const name = `${role}-${index + 1}`;
    const [postgres, redis] = await Promise.all([proxyTo(servers.databaseUrl), proxyTo(servers.redisUrl)]);
    let silent = false;
    let starts = 0;
    let other = version;
    const address = (): string => `127.${index + 1}.${starts >> 8}.${starts & 255}`;
    const names = await nameServer(() => (silent ? 'silent' : [address()]), TTL);
    const campaign: EngineSettings = {
        databaseUrl: through(postgres, servers.databaseUrl),
        redisUrl: through(redis, servers.redisUrl),
        nameServer: names.address,
        ...settings,
    };
    const log = openSync(join(folder, `${name}.log`), 'a');
    const troubles: string[] = [];
    let child = launched();
    let ready = false;
    let asked = false;
    let over = false;
    let restartAfter = RESTART_AFTER;

    function launched(): ChildProcess {
        starts += 1;
        const [execPath, ...first] = QUICK_NODE;
        const preloaded = ['shifted-clock', ...(other === undefined ? [] : ['other-version'])].flatMap((name) => [
            '--import',
            programOf(name),
        ]);
        const started = fork(programOf(role), {
            execPath,
            execArgv: [...first, ...preloaded],
            env: {
                PATH: process.env.PATH,
                CAMPAIGN: JSON.stringify(version === undefined ? campaign : { ...campaign, receiver: address() }),
                CAMPAIGN_VERSION: other,
            },
            stdio: ['ignore', log, log, 'ipc'],
        });
        started.on('message', (message) => {
            ready ||= message === 'ready';
        });
        // A message to a process that has just ended.
        started.on('error', () => {});
        return started;
    }

    async function supervise(): Promise<void> {
        for (;;) {
            const [code, signal] = await exitOf(child);
            if (ready && (asked ? signal === null && code !== 0 : true)) {
                troubles.push(`${name} ended ${asked ? '' : 'unasked '}with ${code ?? signal}`);
            }
            ready = false;
            asked = false;
            if (over) {
                return;
            }
            await sleep(restartAfter);
            if (over) {
                return;
            }
            restartAfter = RESTART_AFTER;
            child = launched();
        }
    }

    const supervised = supervise();

    async function kill(pause: number): Promise<void> {
        asked = true;
        restartAfter = pause;
        const exited = exitOf(child);
        child.kill('SIGKILL');
        await exited;
    }

    async function terminate(pause: number): Promise<void> {
        asked = true;
        restartAfter = pause;
        const exited = exitOf(child);
        child.kill('SIGTERM');
        await within(exited, { timeout: END_WITHIN }).catch(async () => {
            troubles.push(`${name} had not ended ${END_WITHIN / 1000} s after SIGTERM`);
            await kill(pause);
        });
    }

    return {
        name,
        role,
        postgres,
        redis,
        troubles,
        address,
        isReady: () => ready,
        answerNames(answers) {
            silent = !answers;
        },
        send: (message) => void (child.connected && child.send(message, () => {})),
        signal: (signal) => void child.kill(signal),
        kill,
        terminate,
        async upgrade() {
            other = undefined;
            await terminate(0);
        },
        async end() {
            over = true;
            await terminate(0);
            await supervised;
        },
        async close() {
            over = true;
            await kill(0);
            await supervised;
            await Promise.all([postgres.close(), redis.close(), names.close()]);
        },
    };
}

async function exitOf(child: ChildProcess): Promise<readonly [number | null, NodeJS.Signals | null]> {
    return child.exitCode === null && child.signalCode === null
        ? ((await once(child, 'exit')) as [number | null, NodeJS.Signals | null])
        : [child.exitCode, child.signalCode];
}

/** The path of a compiled program of this folder. */
export function programOf(name: string): string {
    return fileURLToPath(new URL(`./${name}.js`, import.meta.url));
}

function proxyTo(server: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(server);
    return tcpProxy({ host: hostname, port: Number(port) });
}

function through({ port }: TcpProxy, server: string): string {
    const url = new URL(server);
    url.port = String(port);
    return url.href;
}
