import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { memoryInventory, memoryRecords } from '../../adapters/memory/index.ts';
import { adminServer } from '../../cli/http-servers.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';

t.test('an import through a server is received for as long as its file takes to be read', async (t) => {
    // A path of a socket has to be short.
    const folder = mkdtempSync(join(tmpdir(), 'sw-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const inventory = memoryInventory();
    const admin = await adminServer({
        socket: join(folder, 's'),
        system: { inventory } as unknown as Parameters<typeof adminServer>[0]['system'],
        read: { store: inventory, records: memoryRecords(), license: alwaysLicensed() },
        signIn: null,
        backUpTo: () => Promise.reject(new Error('There is nothing to copy')),
        onError: (error) => t.fail(String(error)),
    });
    t.teardown(() => admin.stop());
    // Node looks at this twice a minute, and ends every request whose body has taken longer; 0 is for ever.
    t.equal(admin.listener.requestTimeout, 0);
    t.ok(admin.listener.headersTimeout > 0, 'a head does not take that long');
});
