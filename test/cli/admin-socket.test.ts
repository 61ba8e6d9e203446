import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { claimSocket, connectToServer, runningServer, withdrawSocket } from '../../cli/admin-socket.ts';
import { type DataFolder, dataFolder } from '../../cli/data-folder.ts';
import { ownIdentity, type ProcessIdentity } from '../../lib/process-identity.ts';
import { ended, linesOf, nextJson, spawnNode } from '../support/scanwire.ts';

/** No process has it. */
const DEAD: ProcessIdentity = { pid: 2 ** 22 + 1, started: '' };

/** Short enough for a socket, which the folders of tests are not everywhere. */
function shortFolder(t: Test): DataFolder {
    const path = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(path, { recursive: true }));
    return dataFolder(path);
}

/** A folder as `prepareDataFolder` leaves it. */
function closedFolder(t: Test, files: Readonly<Record<string, string>> = {}): DataFolder {
    const path = t.testdir(files);
    chmodSync(path, 0o700);
    return dataFolder(path);
}

async function listening(t: Test, socket: string): Promise<Server> {
    const server = createServer((connection) => connection.destroy()).listen(socket);
    t.teardown(() => server.close());
    await once(server, 'listening');
    return server;
}

t.test('finds the server that listens, and none once it has gone', async (t) => {
    const folder = shortFolder(t);
    t.equal(await runningServer(folder), null);
    const socket = await claimSocket(folder, DEAD);
    t.equal(socket, folder.socket);
    const server = await listening(t, socket);
    t.same(await runningServer(folder), { ...DEAD, socket });
    await t.rejects(claimSocket(folder, { ...DEAD, pid: DEAD.pid + 1 }), { code: 'CONFLICT', field: 'data' });
    server.close();
    await once(server, 'close');
    await withdrawSocket(folder, socket, DEAD.pid);
    t.equal(await runningServer(folder), null);
});

t.test('takes what a killed server left for none, and its place', async (t) => {
    const folder = closedFolder(t);
    writeFileSync(folder.server, JSON.stringify({ ...DEAD, socket: folder.socket }));
    writeFileSync(folder.socket, '');
    t.equal(await runningServer(folder), null);
    const socket = await claimSocket(folder, ownIdentity());
    const server = await listening(t, socket);
    t.ok(await runningServer(folder));
    server.close();
});

t.test('believes no folder that others can reach, whoever asks for its server', async (t) => {
    const folder = shortFolder(t);
    const socket = await claimSocket(folder, DEAD);
    await listening(t, socket);
    chmodSync(folder.path, 0o755);
    const refusal = { code: 'MISCONFIGURED', field: 'data', message: /has mode 0755/ };
    await t.rejects(connectToServer(folder), refusal);
    await t.rejects(runningServer(folder), refusal);
    await t.rejects(claimSocket(folder, ownIdentity()), refusal);
});

t.test('waits for a server that is starting', async (t) => {
    const folder = closedFolder(t);
    const socket = await claimSocket(folder, { pid: process.ppid, started: '' });
    const found = runningServer(folder);
    const server = await listening(t, socket);
    t.same(await found, { pid: process.ppid, started: '', socket });
    server.close();
});

t.test('takes the place of none that lives, however long it takes to start', async (t) => {
    const folder = closedFolder(t);
    const identity = new URL('../../lib/process-identity.js', import.meta.url).href;
    const child = spawnNode(
        [
            '--input-type=module',
            '--eval',
            `import { ownIdentity } from '${identity}'; console.log(JSON.stringify(ownIdentity())); setInterval(() => {}, 1e6)`,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'], env: {} },
    );
    t.teardown(() => child.kill('SIGKILL'));
    const slow = (await nextJson(child, linesOf(child))) as unknown as ProcessIdentity;
    await claimSocket(folder, slow);
    await t.rejects(claimSocket(folder, ownIdentity(), 0), { code: 'CONFLICT', message: new RegExp(`process ${slow.pid}`) });

    await ended(child, 'SIGKILL');
    await t.resolves(claimSocket(folder, ownIdentity(), 0));
});

t.test('waits for no other process that has the pid of a killed server', async (t) => {
    const folder = closedFolder(t);
    writeFileSync(folder.server, JSON.stringify({ pid: process.ppid, started: 'another boot/1', socket: folder.socket }));
    t.equal(await runningServer(folder), null);
});

t.test('leaves the note of a later server alone', async (t) => {
    const folder = closedFolder(t);
    const socket = await claimSocket(folder, DEAD);
    await claimSocket(folder, { ...DEAD, pid: DEAD.pid + 1 });
    await withdrawSocket(folder, socket, DEAD.pid);
    t.ok(statSync(folder.server));
});

t.test('survives a damaged note', async (t) => {
    const folder = closedFolder(t, { 'server.json': '{"pid":' });
    t.equal(await runningServer(folder), null);
});

t.test('puts the socket of a long path into a folder of its own, for the owner only', async (t) => {
    const folder = dataFolder(join(t.testdir(), 'x'.repeat(120)));
    mkdirSync(folder.path, { mode: 0o700 });
    const socket = await claimSocket(folder, DEAD);
    t.teardown(() => rmSync(dirname(socket), { recursive: true, force: true }));
    t.ok(Buffer.byteLength(socket) <= 100);
    t.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
    const server = await listening(t, socket);
    t.same(await runningServer(folder), { ...DEAD, socket });
    server.close();
    await once(server, 'close');

    chmodSync(dirname(socket), 0o755);
    await t.rejects(claimSocket(folder, DEAD), { code: 'MISCONFIGURED', field: 'data' });
});
