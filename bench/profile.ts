import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import type { Setting } from './section.ts';
import { withSender } from './senders.ts';

interface Profile {
    readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string; readonly url: string } }[];
    readonly samples: readonly number[];
    readonly timeDeltas: readonly number[];
}

const DELIVERIES = 20_000;

/** Where the CPU time of a delivery goes on Redis + PostgreSQL with default options: self time by package, as a table. */
export async function profileDeliveries({ own, scale }: Pick<Setting, 'own' | 'scale'>): Promise<string> {
    const count = Math.ceil(DELIVERIES * scale);
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-profile-'));
    try {
        const execArgv = ['--cpu-prof', `--cpu-prof-dir=${folder}`];
        await withSender({ checkout: own, kind: 'servers', execArgv }, async (sender) => {
            await sender.burst(count);
            await sender.finished(count);
        });
        const [file = ''] = await readdir(folder);
        return tableOf(JSON.parse(await readFile(join(folder, file), 'utf8')), count);
    } finally {
        await rm(folder, { recursive: true });
    }
}

function tableOf({ nodes, samples, timeDeltas }: Profile, count: number): string {
    const owners = new Map(nodes.map(({ id, callFrame }) => [id, ownerOf(callFrame.functionName, callFrame.url)]));
    const times = new Map<string, number>();
    for (const [index, id] of samples.entries()) {
        const owner = owners.get(id) ?? '';
        times.set(owner, (times.get(owner) ?? 0) + (timeDeltas[index] ?? 0));
    }

    times.delete('(idle)');
    const total = [...times.values()].reduce((sum, time) => sum + time, 0);
    const table = new Table({ head: ['CPU of the scanwire process', 'µs per delivery', '%'], style: { head: [], border: [] } });
    for (const [owner, time] of [...times].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
        table.push([owner, (time / count).toFixed(0), ((time / total) * 100).toFixed(1)]);
    }

    return table.toString();
}

function ownerOf(functionName: string, url: string): string {
    const [, scope] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
    if (scope !== undefined) {
        return scope;
    }

    if (url.startsWith('node:')) {
        return url.replace(/^(node:(?:internal\/)?[^/]+).*/, '$1');
    }

    return url === '' ? (functionName.startsWith('(') ? functionName : 'native') : 'scanwire';
}
