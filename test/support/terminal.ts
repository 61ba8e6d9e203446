import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));

/** Why there are no terminals for tests here; false where there are. */
export const withoutTerminal: string | false =
    process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0 ? 'needs script of util-linux' : false;

/** What a person sees who runs the command at a terminal. @param command For the shell, after `scanwire`. */
export async function atTerminal(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const shell = `'${process.execPath}' '${ENTRY}' ${command}`;
    const { PATH, HOME } = process.env;
    const child = spawn('script', ['-qec', shell, '/dev/null'], { env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end();
    return await text(child.stdout);
}
