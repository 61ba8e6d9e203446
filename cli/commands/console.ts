import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import { post } from '../admin-client.ts';
import { connectToServer } from '../admin-socket.ts';
import { performing } from '../command.ts';
import { dataFolder } from '../data-folder.ts';
import { relativeTime } from '../output/table.ts';

export function define(self: Command): void {
    performing(self, async ({ data }) => {
        const folder = dataFolder(data);
        const server = await connectToServer(folder);
        if (server === null) {
            throw new ScanwireError(
                'UNAVAILABLE',
                `No server runs on ${folder.path}: start it with scanwire serve, or name its folder with --data`,
                {
                    field: 'data',
                },
            );
        }

        const link = (await post(server, '/sign-in', {})) as { readonly url: string; readonly expiresAt: string };
        return {
            json: link,
            text: () => `${link.url}\nSigns one browser in, once, ${relativeTime(new Date(link.expiresAt), new Date())} at the latest.`,
        };
    });
}
