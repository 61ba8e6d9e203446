import { ScanwireError } from '../lib/scanwire-error.ts';
import { ask } from './client.ts';
import { dataFolder, dataFolderExists } from './data-folder.ts';
import type { Operation } from './operations/operation.ts';
import { runningServer } from './server-socket.ts';

/**
 * Runs the operation in the server that runs on the data folder; where none does, in this process on the same stores. What it
 * answers is plain JSON data either way.
 *
 * @throws ScanwireError `NOT_FOUND` when there is nothing to look at: no folder, and an operation that makes none.
 */
export async function perform<Input extends object, Output>(
    data: string,
    operation: Operation<Input, Output>,
    input: Input,
): Promise<Output> {
    const folder = dataFolder(data);
    const server = await runningServer(folder);
    if (server !== null) {
        return ask(server, operation, input);
    }

    const fresh = process.env.DATABASE_URL === undefined && !(await dataFolderExists(folder));
    if (fresh && operation.creates !== true) {
        throw new ScanwireError('NOT_FOUND', `There is no data folder at ${folder.path}: name it with --data, or run scanwire serve`, {
            field: 'data',
        });
    }

    const { openSystem } = await import('./system.ts');
    const system = await openSystem({ folder, environment: process.env, onError: () => {} });
    try {
        if (operation.delivers === true) {
            await system.deliverAlone();
        }

        return JSON.parse(JSON.stringify(await operation.run(system, input))) as Output;
    } finally {
        await system.close();
    }
}
