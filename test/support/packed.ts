import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Runs a program as a user does, without what gathers coverage in every Node.js below the tests. */
export function run(
    command: string,
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<{ stdout: string }> {
    return execute('env', ['-u', 'NODE_OPTIONS', command, ...args], options);
}

/** A folder with the built package as `scanwire.tgz`, for projects of hosts below it. `SCANWIRE_PACKED` names the one to copy; without it this one is packed. */
export async function packed(): Promise<{ readonly folder: string; remove(): void }> {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-packed-'));
    if (process.env.SCANWIRE_PACKED === undefined) {
        await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder]);
        await run('sh', ['-c', 'mv scanwire-*.tgz scanwire.tgz'], { cwd: folder });
    } else {
        copyFileSync(process.env.SCANWIRE_PACKED, join(folder, 'scanwire.tgz'));
    }

    return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
