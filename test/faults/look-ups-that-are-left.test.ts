import { EventEmitter } from 'node:events';
import { type RequestOptions, request } from 'node:http';
import { server as hapiServer, type Plugin, type Request } from '@hapi/hapi';
import type pg from 'pg';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { exportWorkspace } from '../../lib/inventory/export.ts';
import { readOnlyInventory } from '../../lib/inventory/read-only-inventory.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { whileOpen } from '../../plugins/streamed-answers.ts';
import { beyond90, slow } from '../support/slow-database.ts';

/*
 * The client of one row, or of an index whose parent is looked up, leaves while the database is slow: the connection of that look-up came back to the pool
 * when its statement had ended, or 4.5 s were over.
 */

/** What a client asks for, and the table for which the answer waits. */
interface Asked extends RequestOptions {
    readonly waitsFor: string;
    readonly body?: string;
}

const HOST = '/rest_api/v2/workspaces/1/hosts/1';
const INDEX = '/rest_api/v2/workspaces/1/hosts';
const TYPES = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const TOOL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'hosts', arguments: {} } };

const ASKED: Readonly<Record<string, Asked>> = {
    'one host': { path: HOST, waitsFor: 'scanwire.hosts' },
    'the parent of an index of no rows': { path: INDEX, waitsFor: 'scanwire.workspaces' },
    'the parent of an index of which no row is read': { path: INDEX, method: 'HEAD', waitsFor: 'scanwire.workspaces' },
    'a host of the data service': { path: '/api/v1/hosts/1', waitsFor: 'scanwire.hosts' },
    'the workspace of a tool': {
        path: '/mcp',
        method: 'POST',
        headers: TYPES,
        body: JSON.stringify(TOOL),
        waitsFor: 'scanwire.workspaces',
    },
};

/** Every plugin that looks rows up, over hosts of which no index has any. */
async function serving(t: Test, pool: pg.Pool): Promise<number> {
    const inventory = postgresInventory({ pool });
    const { listText: _, ...hosts } = inventory.hosts;
    const store = { ...inventory, hosts: { ...hosts, async *list() {} } };
    const server = hapiServer({ host: '127.0.0.1', port: 0, debug: false });
    for (const plugin of [restApiV2, metasploitData, mcp]) {
        await server.register({ plugin: plugin as Plugin<object>, options: { store, license: alwaysLicensed(), auth: false } });
    }
    await server.start();
    t.teardown(() => server.stop({ timeout: 0 }));
    return server.info.port as number;
}

t.test('what is looked up for a client who has left gives its connection back at once, and leaves nothing running', async (t) => {
    const { pool, lock, unlock, running, blocked } = await slow(t, { max: 1 });
    const { importHosts, workspaces } = postgresInventory({ pool });
    await importHosts(
        'default',
        (async function* () {
            yield { address: '192.0.2.1' };
        })(),
    );
    t.match(await workspaces.get([], 1), { name: 'default' });
    const port = await serving(t, pool);
    for (const [name, { waitsFor, body, ...options }] of Object.entries(ASKED)) {
        const times: number[] = [];
        // The machine may be busy for one of them, but not for a second.
        while (times.length < 4 && !times.some((time) => time <= 10 || time > 1_000)) {
            await lock(waitsFor);
            const sent = request({ port, ...options }).on('error', () => {});
            sent.end(body);
            await until(async () => (await blocked()).length === 1);
            sent.destroy();
            times.push(await beyond90(pool));
            // What goes on in vain ends with the lock.
            await until(async () => (await running()).length === 0, 5_000).catch(() => t.fail(`${name}: nothing runs any more`));
            await unlock();
        }
        t.ok(Math.min(...times) <= 10, `${name}: after 90 ms and ${times.map(Math.round)}, at most 10`);
    }
});

t.test('so does the workspace that an export looks up', async (t) => {
    const { pool, lock, unlock, running, blocked } = await slow(t, { max: 1 });
    await lock();
    const leaving = new AbortController();
    const query = { workspace: 'default', format: 'jsonl' } as const;
    const exporting = exportWorkspace(postgresInventory({ pool }), query, { signal: leaving.signal });
    await until(async () => (await blocked()).length === 1);
    leaving.abort();
    await t.rejects(exporting, { name: 'AbortError' });
    await until(async () => (await running()).length === 0);
    await unlock();
});

t.test('many look-ups that leave together leave nothing behind, and warn of nothing', async (t) => {
    const { pool, lock, unlock, running, blocked } = await slow(t, { max: 12 });
    const warnings: Error[] = [];
    const heard = (warning: Error): void => void warnings.push(warning);
    process.on('warning', heard);
    t.teardown(() => void process.removeListener('warning', heard));
    const { workspaces } = postgresInventory({ pool });
    await lock();
    const leaving = new AbortController();
    const { signal } = leaving;
    const looking = Array.from({ length: 30 }, (_, index) => workspaces.get([], index + 1, { signal }));
    await until(async () => (await blocked()).length === 12);
    leaving.abort();
    await Promise.all(looking.map((each) => t.rejects(each, { name: 'AbortError' })));
    await until(async () => (await running()).length === 0 && pool.waitingCount === 0);
    await unlock();
    t.match(await workspaces.get([], 1), { name: 'default' });
    t.strictSame(warnings, []);
});

t.test('a store out of functions tells them who has left, in the look-up of a row and of its parents', async (t) => {
    const told: (readonly [string, AbortSignal | undefined])[] = [];
    const reading = (name: string) => (_: readonly number[], page: { readonly signal?: AbortSignal | undefined }) => {
        told.push([name, page.signal]);
        return name === 'services' ? [] : [{ id: 1, name: 'default', address: '192.0.2.1', created_at: new Date(0) }];
    };
    const store = readOnlyInventory({ workspaces: reading('workspaces'), hosts: reading('hosts'), services: reading('services') as never });
    const { signal } = new AbortController();
    t.match(await store.hosts.get([1], 1, { signal }), { address: '192.0.2.1' });
    t.equal(await present(store.services).get([1, 1], 1, { signal }), null);
    for await (const _batch of present(store.services).list([1, 1], { signal })) {
        t.fail('there is none');
    }
    t.strictSame(
        told.map(([name]) => name),
        ['hosts', 'hosts', 'services', 'hosts', 'services'],
    );
    t.ok(told.every(([, given]) => given === signal));
});

t.test('nobody listens for who leaves before a store asks for the signal, nor once the work is over', async (t) => {
    const res = Object.assign(new EventEmitter(), { closed: false });
    const asked = (): ReturnType<typeof whileOpen> => whileOpen({ raw: { res } } as unknown as Request);
    const [unread, done, left] = [asked(), asked(), asked()];
    unread.done();
    t.equal(res.listenerCount('close'), 0);
    const signals = [done.signal, left.signal];
    t.equal(res.listenerCount('close'), 2);
    done.done();
    res.emit('close');
    t.strictSame(
        signals.map(({ aborted }) => aborted),
        [false, true],
    );
    res.closed = true;
    t.equal(asked().signal.aborted, true, 'asked for when the client has left');
});
