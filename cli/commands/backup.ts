import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import { post } from '../admin-client.ts';
import { connectToServer } from '../admin-socket.ts';
import { type BackedUp, backUp } from '../backup.ts';
import { performing } from '../command.ts';
import { type DataFolder, dataFolder, dataFolderExists } from '../data-folder.ts';

export function define(self: Command): void {
    performing(self, async ({ data, args: [given = ''] }) => {
        const file = resolve(given);
        const folder = dataFolder(data);
        if (!(await dataFolderExists(folder))) {
            throw new ScanwireError('NOT_FOUND', `There is no data folder at ${folder.path}: name it with --data`, { field: 'data' });
        }

        const server = await connectToServer(folder);
        const done = server === null ? await backUpHere(folder, file) : ((await post(server, '/backup', { file })) as BackedUp);
        const ring = done.keyRing
            ? 'the key ring included; keep it as you would a private key'
            : 'without the key ring of SCANWIRE_KEY_RING';
        return { json: done, text: () => `Backup in ${done.file}: ${done.bytes} bytes, ${ring}` };
    });
}

/** Where no server runs, the database is this process's to open. */
async function backUpHere(folder: DataFolder, file: string): Promise<BackedUp> {
    const { openParts } = await import('../deployment.ts');
    const parts = await openParts({ folder, environment: process.env, onError: () => {} });
    try {
        return await backUp(folder, parts.stores.dump, file);
    } finally {
        await parts.close();
    }
}
