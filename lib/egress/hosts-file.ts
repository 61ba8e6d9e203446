import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';

/** Path of the hosts file of the system. */
export const HOSTS_FILE: string =
    process.platform === 'win32' ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32/drivers/etc/hosts') : '/etc/hosts';

/** What a hosts file gives each of its names, in lower case. */
export function namesIn(hostsFile: string): ReadonlyMap<string, readonly string[]> {
    const names = new Map<string, readonly string[]>();
    for (const line of hostsFile.split('\n')) {
        const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/);
        for (const alias of isIP(address) === 0 ? [] : aliases) {
            const name = alias.toLowerCase();
            names.set(name, [...(names.get(name) ?? []), address]);
        }
    }
    return names;
}

/** Looks names up in a hosts file, which is read again when it has changed. A file that is not there names nothing. */
export function hostsReader(path: string = HOSTS_FILE): (hostname: string) => Promise<readonly string[]> {
    let version = '';
    let names: ReadonlyMap<string, readonly string[]> = new Map();

    return async (hostname) => {
        const found = await stat(path).then(
            ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
            () => '',
        );
        if (found !== version) {
            names = found === '' ? new Map() : namesIn(await readFile(path, 'utf8'));
            version = found;
        }
        return names.get(hostname.toLowerCase().replace(/\.$/, '')) ?? [];
    };
}
