import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { memoryInventory, memoryRecords } from '../../adapters/memory/index.ts';
import { adminServer } from '../../cli/http-servers.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';

t.test('lets whoever runs a server send it what expands as a file of theirs may', async (t) => {
    // A path of a socket has to be short.
    const folder = mkdtempSync(join(tmpdir(), 'sw-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const socket = join(folder, 's');
    const inventory = memoryInventory();
    const admin = await adminServer({
        socket,
        system: { inventory } as unknown as Parameters<typeof adminServer>[0]['system'],
        read: { store: inventory, records: memoryRecords(), license: alwaysLicensed() },
        signIn: null,
        backUpTo: () => Promise.reject(new Error('There is nothing to copy')),
        onError: (error) => t.fail(String(error)),
    });
    t.teardown(() => admin.stop());
    const answer = await new Promise<unknown>((resolve, reject) => {
        const headers = { 'content-type': 'application/octet-stream' };
        request({ socketPath: socket, method: 'POST', path: '/import?workspace=default', headers })
            .on('response', (response) => resolve(json(response)))
            .on('error', reject)
            .end(gzipSync('{"address":"192.0.2.7"}\n'.concat('\n'.repeat(2_000_000))));
    });
    t.match(answer, { hosts: { new: 1 } });
});
