import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));

/** Why there are no terminals for tests here; false where there are. */
export const withoutTerminal: string | false =
    process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0 ? 'needs script of util-linux' : false;

/** What a person sees who runs the command at a terminal. @param command For the shell, after `scanwire`. @param onText Gets all of it so far. */
export async function atTerminal(
    command: string,
    env: Readonly<Record<string, string>> = {},
    onText: (text: string) => void = () => {},
): Promise<string> {
    const shell = `'${process.execPath}' '${ENTRY}' ${command}`;
    const { PATH, HOME } = process.env;
    const child = spawn('script', ['-qec', shell, '/dev/null'], { env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end();
    let seen = '';
    child.stdout.setEncoding('utf8');
    for await (const piece of child.stdout) {
        seen += String(piece);
        onText(seen);
    }
    return seen;
}
