import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { findOnPath, findPostgres, findRedis } from './find-program.ts';
import { freePort } from './free-port.ts';
import { pingRedis } from './ping-redis.ts';
import { postgresServer } from './postgres-server.ts';
import { type ServerProcess, startServer } from './server-process.ts';
import { folderOfServers } from './temporary-folders.ts';

/** The servers that tests and measurements need. */
export interface TestServers {
    /** `REDIS_SERVER` is the path of the program. */
    readonly env: { readonly REDIS_URL: string; readonly DATABASE_URL: string; readonly REDIS_SERVER: string };
    /** Ends what was started here and removes its files. */
    stop(): Promise<void>;
}

export interface TestServersOptions {
    /** Whether what they acknowledge survives a power cut, as in production: slower, and what a measurement wants. */
    readonly durable?: boolean;
    /** Of PostgreSQL, where it is started here. */
    readonly settings?: readonly string[];
}

/** Names of Debian packages. Tests recompute signatures with `openssl`. */
const PACKAGES = { redis: 'redis-server', postgres: 'postgresql', openssl: 'openssl' };

/** Programs of others that tests of `test/interop/` and those in a browser run, and the Debian packages that hold them. */
const FOREIGN_PACKAGES = {
    chromium: 'chromium',
    curl: 'curl',
    webhook: 'webhook',
    python3: 'python3',
    go: 'golang-go',
    ruby: 'ruby',
    php: 'php-cli',
};

const isRoot = process.getuid?.() === 0;

/**
 * Installs them where this is root with apt. Elsewhere their tests are skipped, unless somebody has installed them.
 *
 * @returns Whether it may install them here.
 */
export function installForeignPrograms(): boolean {
    const missing = Object.entries(FOREIGN_PACKAGES).filter(([program]) => findOnPath(program) === null);
    const installs = isRoot && findOnPath('apt-get') !== null;
    if (missing.length > 0 && installs) {
        install(missing.map(([, debianPackage]) => debianPackage));
    }

    return installs;
}

/** Where the programs of the servers are: a path, and the folder of those of PostgreSQL. */
interface ServerPrograms {
    readonly redis: string;
    readonly postgres: string;
}

/**
 * What of them is not on the machine is installed where this is root with apt.
 *
 * @param withPostgres False where PostgreSQL runs already: then its folder is empty, unless it is found.
 * @throws Error that says what to install.
 */
export function serverPrograms(withPostgres = true): ServerPrograms {
    const programs = { redis: findRedis(), postgres: findPostgres() ?? (withPostgres ? null : ''), openssl: findOnPath('openssl') };
    const missing = Object.entries(PACKAGES).filter(([name]) => programs[name as keyof typeof programs] === null);
    if (missing.length > 0) {
        install(missing.map(([, debianPackage]) => debianPackage));
    }

    const [redis, postgres] = [programs.redis ?? findRedis(), programs.postgres ?? findPostgres()];
    if (redis === null || postgres === null) {
        throw new Error('apt has installed the servers, but their programs are not where they should be');
    }
    return { redis, postgres };
}

/**
 * The Redis and the PostgreSQL named by `REDIS_URL` and `DATABASE_URL`, else new ones on free ports in a temporary folder.
 * What is not on the machine is installed where this is root with apt. Some tests stop and restart a Redis of their own, so
 * the program is needed in any case.
 *
 * @throws Error that says what to install.
 */
export async function testServers({ durable = false, settings = [] }: TestServersOptions = {}): Promise<TestServers> {
    const programs = serverPrograms(!process.env.DATABASE_URL);
    const folder = folderOfServers('scanwire-test');
    const started: Pick<ServerProcess, 'stop'>[] = [];
    const stop = async (): Promise<void> => {
        await Promise.all(started.splice(0).map((server) => server.stop()));
        rmSync(folder, { recursive: true, force: true });
    };

    try {
        const redisUrl = process.env.REDIS_URL || (await startRedis(programs.redis, { folder, durable, started }));
        const databaseUrl = process.env.DATABASE_URL || (await startPostgres(programs.postgres, { folder, durable, started }, settings));
        return { env: { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl, REDIS_SERVER: programs.redis }, stop };
    } catch (error) {
        await stop();
        throw error;
    }
}

interface Place {
    readonly folder: string;
    readonly durable: boolean;
    readonly started: Pick<ServerProcess, 'stop'>[];
}

async function startRedis(program: string, { folder, durable, started }: Place): Promise<string> {
    const port = await freePort();
    const args = [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        folder,
        '--save',
        '',
        '--appendonly',
        'yes',
        '--appendfsync',
        durable ? 'everysec' : 'no',
    ];
    const answers = (): Promise<boolean> => pingRedis(port);
    started.push(await startServer({ program, args, cwd: folder, stopSignal: 'SIGTERM', answers }));
    return `redis://127.0.0.1:${port}`;
}

/** What is lost with the machine is lost with the folder. */
const HASTY = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

async function startPostgres(programs: string, { folder, durable, started }: Place, settings: readonly string[]): Promise<string> {
    const server = await postgresServer(folder, { programs, settings: [...settings, ...(durable ? [] : HASTY)] });
    started.push(server);
    return server.url;
}

function install(packages: readonly string[]): void {
    const apt = findOnPath('apt-get');
    if (!isRoot || apt === null) {
        throw new Error(
            `Missing ${packages.join(' and ')}: install ${packages.length > 1 ? 'them' : 'it'} ` +
                `(Debian and Ubuntu: sudo apt-get install ${packages.join(' ')}; macOS: brew install redis postgresql), ` +
                'or name running servers by REDIS_URL and DATABASE_URL; the program redis-server is needed in any case.',
        );
    }

    console.log(`Installing ${packages.join(' and ')}`);
    for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
        const { status, stdout, stderr } = spawnSync(apt, args, {
            encoding: 'utf8',
            env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
        });
        if (status !== 0) {
            throw new Error(`apt-get ${args.join(' ')} failed:\n${stdout}\n${stderr}`);
        }
    }
}
