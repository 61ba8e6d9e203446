import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { inClosedPorts, withoutPorts } from '../../lib/inventory/closed-ports.ts';
import type { HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import { readXmlScan } from '../../lib/inventory/scan-files/read-xml.ts';
import { served } from '../plugins/metasploit-data/data-service.ts';
import { collect } from '../support/collect.ts';

/*
 * Rows that are compared with many ranges must not cost one after the other: a call that named a thousand addresses once blocked everybody for a
 * second with each batch of rows.
 */

const HOSTS = 10_000;
const RANGES = 1000;
/** Times as much as with one range, or milliseconds where that is next to nothing: one after the other it is hundreds of times as much. */
const [FACTOR, LEAST] = [5, 100];

async function* hosts(): AsyncGenerator<HostInput> {
    for (let number = 0; number < HOSTS; number += 1) {
        yield { address: `10.0.${number >> 8}.${number & 255}` };
    }
}

/** Blocks that hold none of the hosts. */
function blocks(count: number): readonly string[] {
    return Array.from({ length: count }, (_, number) => `172.${16 + (number >> 8)}.${number & 255}.0/24`);
}

/** CPU time in milliseconds, the least of up to three: what else goes on in the machine only ever adds to it. */
async function leastCost(work: () => unknown, allowed = 0): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && least > allowed; tries += 1) {
        const before = process.cpuUsage();
        await work();
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, (user + system) / 1000);
    }
    return least;
}

/** @param work With so many ranges. */
async function costsLittleMore(t: Test, name: string, work: (ranges: number) => unknown): Promise<void> {
    await work(1);
    const allowed = Math.max(FACTOR * (await leastCost(() => work(1))), LEAST);
    const spent = await leastCost(() => work(RANGES), allowed);
    t.ok(spent <= allowed, `${name}: ${spent} of ${allowed} ms`);
}

t.test('a list of the data service costs little more with a thousand ranges than with one', async (t) => {
    const store = memoryInventory();
    await store.importHosts('default', hosts());
    const { rpc, ask } = await served({ store });
    await costsLittleMore(t, 'JSON-RPC', async (ranges) => {
        const { result } = await rpc('db.hosts', { addresses: blocks(ranges) });
        t.same(result, { hosts: [] });
    });
    await costsLittleMore(t, 'GET', async (ranges) => {
        const { status, body } = await ask(`/hosts?address=${blocks(ranges)}`);
        t.same([status, body], [200, { data: [] }]);
    });
    const found = (await rpc('db.hosts', { addresses: ['10.0.1.2', ...blocks(RANGES - 1)] })).result.hosts;
    t.match(found, [{ address: '10.0.1.2' }]);
});

t.test('an import costs little more with a boundary of many ranges than with one', async (t) => {
    // As many as fit in.
    const boundaryOf = (ranges: number) => (ranges === 1 ? '172.16.0.0/24' : Array.from({ length: 1300 }, () => '::').join());
    const limitedTo = async (ranges: number) => {
        const store = memoryInventory();
        await store.importHosts('default', Readable.from([]));
        await store.updateWorkspace('default', { boundary: boundaryOf(ranges), limit_to_network: true });
        return store;
    };
    // To read a boundary when it is set is no cost of an import.
    const [few, many] = [await limitedTo(1), await limitedTo(RANGES)];
    await costsLittleMore(t, 'boundary', async (ranges) => {
        t.match(await (ranges === 1 ? few : many).importHosts('default', hosts()), { hosts: { refused: HOSTS } });
    });
});

const everyOther = Array.from({ length: 32_768 }, (_, index) => 2 * index + 1);

t.test('ports are looked up among many ranges at once', async (t) => {
    const ranges = everyOther.map((port) => [port, port] as const);
    const costs = {
        'left out of ranges': () => withoutPorts(ranges, everyOther),
        'left out of one': () => withoutPorts([[1, 65_535]], everyOther),
        'asked for'() {
            const wereClosed = inClosedPorts([{ tcp: ranges }]);
            return everyOther.map((port) => wereClosed({ port: port + 1, proto: 'tcp' }));
        },
    };
    for (const [name, work] of Object.entries(costs)) {
        const spent = await leastCost(work, 300);
        t.ok(spent <= 300, `${name}: ${spent} ms`);
    }
});

t.test('an import that replaces looks for each service at once', async (t) => {
    const services = everyOther.map((port): ServiceInput => ({ port, proto: 'tcp', state: 'open', name: '', info: null }));
    const store = memoryInventory();
    const imported = (replace: boolean) => store.importHosts('default', Readable.from([{ address: '192.0.2.1', services }]), { replace });
    await imported(false);
    const allowed = FACTOR * (await leastCost(() => imported(false)));
    const spent = await leastCost(() => imported(true), allowed);
    t.ok(spent <= allowed, `${spent} of ${allowed} ms`);
});

t.test('a report that tells closed ports bit by bit costs no more than by its length', async (t) => {
    const reasons = (ports: string) => `<extrareasons proto="tcp" ports="${ports}"/>`;
    const report = `<?xml version="1.0"?><nmaprun scanner="nmap"><host><status state="up"/><address addr="192.0.2.1"/><ports>
        <extraports state="closed" count="9">${reasons(everyOther.join())}${reasons('1').repeat(2000)}</extraports></ports></host></nmaprun>`;
    let found: readonly unknown[] = [];
    const spent = await leastCost(async () => {
        found = await collect(readXmlScan(Readable.from([Buffer.from(report)])));
    }, 1000);
    t.match(found, [{ address: '192.0.2.1' }]);
    t.ok(spent <= 1000, `${spent} ms`);
});
