import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';
import { Server } from '@hapi/hapi';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from 'scanwire/memory';
import t, { type Test } from 'tap';
import { plugin as records } from '../../plugins/https-record-schema/index.ts';
import { plugin as restApi } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { findOnPath } from '../support/find-program.ts';
import { investigation } from '../support/investigation.ts';
import { run } from '../support/packed.ts';
import { shellBlocks } from '../support/pages.ts';
import { fixture } from '../support/served.ts';

/* What the pages say to type into a shell, typed: each block on a host as its page presumes it. */

/** Where the blocks are typed: below the packages that this project has, which `npx` finds. */
const FOLDER = 'build/shell-blocks';

/** What others run: `test/interop/receivers.test.ts`, and in `running-pages.test.ts` the packages of that line. */
const ELSEWHERE = ['receivers.md', 'observing.md'];

interface Host {
    readonly origin: string;
    readonly key: string;
}

/** A host with all that the pages ask. */
async function host(t: Test): Promise<Host> {
    const server = new Server({ host: '127.0.0.1', port: 0, debug: false });
    const sealing = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
    const inventory = memoryInventory();
    const webhooks = { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing, routes: {} };
    await server.register([
        { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: sealing } },
        { plugin: restApi, options: { store: inventory, license: alwaysLicensed() } },
        { plugin: records, options: { records: memoryRecords({ inventory }), auth: false } },
        { plugin: webhookExporter, options: webhooks },
    ]);
    server.route({ method: 'GET', path: '/reports', options: { auth: 'token' }, handler: () => 'Hello' });
    await server.start();
    t.teardown(() => server.stop());
    const { key } = await server.plugins['token-auth'].create('pages', { scopes: ['inventory:read', 'events:publish'] });
    return { origin: server.info.uri, key };
}

/** Types a block, with the origin of the host in place of that of the page. @returns What it prints. */
async function typed(block: string, { origin, key }: Host): Promise<string> {
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', block.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, origin)], {
        cwd: FOLDER,
        env: { ...process.env, KEY: key },
    });
    return stdout;
}

/** What each page's blocks must have done, in their order. */
const PAGES: Readonly<Record<string, readonly ((t: Test, block: string, host: Host) => Promise<unknown>)[]>> = {
    'https-record-schema.md': [
        async (t, block, host) => {
            copyFileSync(fixture('records/https.jsonl'), join(FOLDER, 'records.jsonl'));
            t.match(JSON.parse(await typed(block, host)), { ok: true, records: 3 });
        },
        async (t, block, host) => {
            writeFileSync(join(FOLDER, 'records.jsonl.gz'), gzipSync(readFileSync(fixture('records/https.jsonl'))));
            t.match(JSON.parse(await typed(block, host)), { complete: true, new: 3 });
        },
    ],
    'rest-api-v2.md': [
        async (t, block, host) => t.match(JSON.parse(await typed(block, host)), []),
        async (t, block, host) => {
            await typed(block, host);
            t.match(readFileSync(join(FOLDER, 'client.ts'), 'utf8'), 'export function listWorkspaces');
        },
    ],
    'scan-database.md': [servesScanDatabase],
    'token-auth.md': [async (t, block, host) => t.equal(await typed(block, host), 'Hello')],
    'webhook-exporter.md': [
        async (t, block, host) => {
            writeFileSync(join(FOLDER, 'event.json'), JSON.stringify({ kind: 'idr_investigation_created', body: investigation }));
            t.match(JSON.parse(await typed(block, host)), { eventId: String, deliveries: [] });
        },
    ],
};

/** The last line starts a server: it is ended once it has said where it is. */
async function servesScanDatabase(t: Test, block: string): Promise<void> {
    const scanned = await scanDatabase();
    t.teardown(() => scanned.stop());
    const program = join(FOLDER, 'scanwire');
    writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${resolve('dist/cli/scanwire.js')} "$@" --data data --port 0\n`);
    chmodSync(program, 0o755);
    const ours = block.replace(/postgres:\/\/[^']+/, scanned.url);
    t.not(ours, block);
    const env = { ...process.env, PATH: `${resolve(FOLDER)}:${process.env.PATH}` };
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', ours.replace(/^scanwire /m, 'exec scanwire ')], { cwd: FOLDER, env });
    t.teardown(() => shell.kill('SIGKILL'));
    const lines: string[] = [];
    for await (const line of createInterface(shell.stdout)) {
        lines.push(line);
        if (line.includes('https://127.0.0.1:')) {
            break;
        }
    }
    t.match(lines.join('\n'), /REST API +https:\/\/127\.0\.0\.1:\d+/);
    const ended = once(shell, 'exit');
    shell.kill('SIGTERM');
    t.strictSame(await ended, [0, null]);
}

t.test('what the pages say to type works', { skip: findOnPath('curl') === null && 'curl is not installed' }, async (t) => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    const blocks = shellBlocks();
    t.strictSame([...blocks.keys()].sort(), [...Object.keys(PAGES), ...ELSEWHERE].sort(), 'no page is left out');
    for (const [page, works] of Object.entries(PAGES)) {
        t.equal(blocks.get(page)?.length, works.length, `all blocks of ${page}`);
        const given = await host(t);
        for (const [index, work] of works.entries()) {
            await work(t, blocks.get(page)?.[index] ?? '', given);
        }
    }
});
