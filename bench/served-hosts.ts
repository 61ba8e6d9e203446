import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checkout } from './checkout.ts';
import type { Figures } from './section.ts';
import { type Command, commandOn, SERVE } from './served-deployment.ts';
import type { Shown } from './shows.ts';

/** `serve` with hosts in its embedded database, and a key. */
export interface ServedHosts {
    readonly url: string;
    readonly key: string;
    readonly pid: number;
    /** A host, for whoever has the key. */
    readonly host: Shown;
    readonly run: Command['run'];
}

/** Starts it on a folder of its own, and removes everything after the task. */
export async function withServedHosts(checkout: Checkout, task: (served: ServedHosts) => Promise<Figures>): Promise<Figures> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const command = commandOn(checkout, join(folder, 'data'), {});
    try {
        const server = await command.start(...SERVE);
        const { url } = JSON.parse(server.firstLine) as { url: string };
        await command.run('import', 'fixtures/scans/services.xml');
        const scopes = ['inventory:read', 'records:write', 'events:publish'].flatMap((scope) => ['--scope', scope]);
        const { key } = JSON.parse(await command.run('keys', 'create', 'good', ...scopes, '--json')) as { key: string };
        const host = { url: `${url}/rest_api/v2/workspaces/1/hosts/1`, key };
        return await task({ url, key, host, pid: server.pid as number, run: command.run });
    } finally {
        await command.end();
        await rm(folder, { recursive: true });
    }
}
