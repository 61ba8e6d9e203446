import Table from 'cli-table3';
import { testServers } from '../test/support/servers.ts';
import { child } from './child.ts';
import { DELIVERIES, measureDeliveries } from './measure-deliveries.ts';
import { HOSTS, measureIndex } from './measure-index.ts';
import { profileDeliveries } from './profile-deliveries.ts';
import { rounds } from './rounds.ts';
import { serveCost } from './serve-cost.ts';

/** `npm run bench`: every figure that the documentation quotes, beside its peer, from one interleaved run. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const services = await testServers({ durable: true });

Object.assign(process.env, services.env);

try {
    const table = new Table({ head: ['what', 'scanwire', 'peer', 'ratio'], style: { head: [], border: [] } });

    say('deliveries');
    const { embedded, servers, bare } = await measureDeliveries(ROUNDS);
    table.push(
        [
            `deliveries/s, Redis + PostgreSQL (${DELIVERIES.servers}); peer: BullMQ + undici, no rows`,
            ...compared(servers.perSecond, bare.perSecond, 0),
        ],
        [`deliveries/s, embedded (${DELIVERIES.embedded}); the same peer`, ...compared(embedded.perSecond, bare.perSecond, 0)],
        ['events accepted/s, Redis + PostgreSQL', fixed(servers.acceptedPerSecond ?? 0, 0), '', ''],
        ['events accepted/s, embedded', fixed(embedded.acceptedPerSecond ?? 0, 0), '', ''],
    );

    say(`index of ${HOSTS} hosts`);
    const { scanwire, fastify } = await measureIndex(ROUNDS);
    table.push(
        [`index of ${HOSTS} hosts, s; peer: fastify + pg`, ...compared(scanwire.seconds, fastify.seconds, 2)],
        ['  first byte, ms', ...compared(scanwire.firstByteMs, fastify.firstByteMs, 0)],
        ['  peak memory of the server, MiB', ...compared(scanwire.peakMiB, fastify.peakMiB, 0)],
        ['  body, MiB', ...compared(scanwire.mebibytes, fastify.mebibytes, 1)],
    );

    say('a host with and without the plugins');
    const [withPlugins, without] = await rounds(
        ['plugins', 'bare'].map((variant) => ({
            name: variant,
            run: () => child<HostFigures>('host-cost.js', { args: [variant], execArgv: ['--expose-gc'] }),
        })),
        ROUNDS,
    );
    if (withPlugins !== undefined && without !== undefined) {
        table.push(
            [
                'hapi server with token-auth and rest-api-v2, ms to the first answer; peer: bare hapi',
                ...compared(withPlugins.startMs, without.startMs, 0),
            ],
            ['  memory, MiB', ...compared(withPlugins.rssMiB, without.rssMiB, 0)],
            ['  CommonJS modules loaded', ...compared(withPlugins.modules, without.modules, 0)],
            ['  of them queue, database driver or HTTP client', ...compared(withPlugins.heavy, without.heavy, 0)],
        );
    }

    say('scanwire serve');
    const [serve] = await rounds([{ name: 'serve', run: serveCost }], Math.min(ROUNDS, 3));
    if (serve !== undefined) {
        table.push(
            ['scanwire serve, first start on an empty folder, ms', fixed(serve.firstStartMs, 0), '', ''],
            ['  later starts, ms', fixed(serve.laterStartMs, 0), '', ''],
            ['  idle memory, MiB', fixed(serve.idleMiB, 0), '', ''],
        );
    }

    console.log(`\nNode ${process.version}, medians of ${ROUNDS} interleaved rounds after one that does not count\n`);
    console.log(table.toString());

    say('profile of the deliveries');
    console.log(await profileDeliveries());
} finally {
    await services.stop();
}

interface HostFigures {
    readonly startMs: number;
    readonly rssMiB: number;
    readonly modules: number;
    readonly heavy: number;
    readonly [figure: string]: number;
}

function say(what: string): void {
    process.stderr.write(`measuring: ${what}\n`);
}

function compared(ours: number, peers: number, digits: number): [string, string, string] {
    return [fixed(ours, digits), fixed(peers, digits), peers === 0 ? '' : fixed(ours / peers, 2)];
}

function fixed(value: number, digits: number): string {
    return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
