import { resolve } from 'node:path';
import type { Command } from 'commander';
import { restore } from '../backup.ts';
import { performing } from '../command.ts';
import { dataFolder } from '../data-folder.ts';

export function define(self: Command): void {
    performing(self, async ({ data, args: [file = ''] }) => {
        const folder = dataFolder(data);
        await restore(folder, resolve(file));
        return { json: { data: folder.path }, text: () => `Restored into ${folder.path}` };
    });
}
