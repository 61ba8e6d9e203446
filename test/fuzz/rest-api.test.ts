import type { Server } from '@hapi/hapi';
import pg from 'pg';
import t from 'tap';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { migrate, postgresInventory } from '../../adapters/postgres/index.ts';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { served } from '../plugins/rest-api-v2/served.ts';
import { testDatabase } from '../support/test-database.ts';
import { randomRequest } from './paths.ts';

/** Two for each seed, and of each database a twentieth, which takes as long. More where somebody asks for them: `FUZZ_REQUESTS=1000000`. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 100_000);
const DATABASE_REQUESTS = REQUESTS / 20;
const MEMORY_REQUESTS = REQUESTS - 2 * DATABASE_REQUESTS;
const FIRST_SEED = 1;
/** Requests at once, so that a database is not waited for one by one. */
const AT_ONCE = 8;
/** What a valid key may be answered. */
const ANSWERS = [200, 400, 404, 410];

/** What randomness comes upon too rarely. */
const OTHERS = ['updated_since', 'deleted_since'].map((name) => `/workspaces?${name}=9999-01-01T00:00:00Z&after=-8640000000000000-1`);

async function* hosts(): AsyncIterable<HostInput> {
    const services = [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' }] as const;
    yield { address: '192.0.2.1', name: 'köln 💾', services };
    yield { address: '2001:db8::1', services };
}

async function filled<Store extends InventoryStore & InventoryWriter>(store: Store): Promise<Store> {
    await store.importHosts('default', hosts());
    await store.importHosts('other', hosts());
    return store;
}

/** Whether a path is still one of the API where `%2e%2e` is the folder above, as for everybody who reads URLs. */
function isBelow(path: string): boolean {
    return `${new URL(`http://host/rest_api/v2${path}`).pathname}/`.startsWith('/rest_api/v2/');
}

interface Found {
    readonly wrong: readonly string[];
    /** How often each status came. */
    readonly statuses: ReadonlyMap<number, number>;
}

/** Asks with a valid key, with an unknown parameter more, and with no key. */
async function askAll(server: Server, token: string, requests: number, others = OTHERS): Promise<Found> {
    const wrong: string[] = [];
    const statuses = new Map<number, number>();
    const plain = new Map<string, string>();
    const ask = async (url: string, headers: Record<string, string> = { token }) => {
        const { statusCode, payload } = await server.inject({ url: `/rest_api/v2${url}`, headers });
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
        return { statusCode, payload };
    };

    async function check(seed: number): Promise<void> {
        const { path, query, unknown } = randomRequest(seed);
        const { statusCode, payload } = await ask(`${path}${query}`);
        if (!ANSWERS.includes(statusCode) || (statusCode !== 200 && JSON.parse(payload).statusCode !== statusCode)) {
            wrong.push(`seed ${seed}: ${statusCode} for ${path}${query}`);
        }

        const usual = plain.get(path) ?? (await ask(path)).payload;
        plain.set(path, usual);
        if ((await ask(`${path}${unknown}`)).payload !== usual) {
            wrong.push(`seed ${seed}: other bytes for ${path}${unknown}`);
        }
        if (seed % 50 === 0 && isBelow(path) && (await ask(`${path}${query}`, {})).statusCode !== 403) {
            wrong.push(`seed ${seed}: no 403 for ${path}${query} without a key`);
        }
    }

    for (const path of others) {
        const { statusCode, payload } = await ask(path);
        if (statusCode !== 200 || payload !== '[]') {
            wrong.push(`${statusCode} for ${path}`);
        }
    }
    const last = FIRST_SEED + requests / 2;
    let next = FIRST_SEED;
    const lane = async (): Promise<void> => {
        while (next < last && wrong.length < 10) {
            next += 1;
            await check(next - 1);
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    return { wrong, statuses };
}

t.test(`answers ${MEMORY_REQUESTS} random paths and queries without a fault, and what is unknown changes nothing`, async (t) => {
    const { server, headers } = await served({ store: await filled(memoryInventory()) });
    const { wrong, statuses } = await askAll(server, headers.token ?? '', MEMORY_REQUESTS);
    t.strictSame(wrong, []);
    for (const status of [...ANSWERS, 403]) {
        t.ok((statuses.get(status) ?? 0) > 9, `${status}: ${statuses.get(status)}`);
    }
});

t.test(`the same of PostgreSQL, ${DATABASE_REQUESTS} of them`, async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {});
    t.after(() => pool.end());
    await migrate(pool);
    const { server, headers } = await served({ store: await filled(postgresInventory({ pool })) });
    const { wrong } = await askAll(server, headers.token ?? '', DATABASE_REQUESTS);
    t.strictSame(wrong, []);
});

t.test(`the same of a scan database, ${DATABASE_REQUESTS} of them`, async (t) => {
    const { url, stop } = await scanDatabase(20);
    const { inventory, close } = await openScanDatabase({ connectionString: url });
    t.teardown(async () => {
        await close();
        await stop();
    });
    const { server, headers } = await served({ store: inventory });
    // It does not know what was deleted.
    const { wrong } = await askAll(server, headers.token ?? '', DATABASE_REQUESTS, OTHERS.slice(0, 1));
    t.strictSame(wrong, []);
});
