import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where package managers put servers without putting them on PATH. */
const POSTGRES_FOLDERS = ['/usr/lib/postgresql', '/usr/pgsql', '/opt/homebrew/opt', '/usr/local/opt'];
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

/** Path of `redis-server`, or of its heir, null when there is none. */
export function findRedis(): string | null {
    const folders = programFolders();
    return (
        folders.map((folder) => join(folder, 'redis-server')).find(isProgram) ??
        folders.map((folder) => join(folder, 'valkey-server')).find(isProgram) ??
        null
    );
}

/** The folder with `postgres` and `initdb`, of the newest version outside PATH; null when there is none. */
export function findPostgres(): string | null {
    const folders = [...programFolders(), ...POSTGRES_FOLDERS.flatMap(versions)];
    return folders.find((folder) => isProgram(join(folder, 'postgres')) && isProgram(join(folder, 'initdb'))) ?? null;
}

export function findOnPath(name: string): string | null {
    return (
        programFolders()
            .map((folder) => join(folder, name))
            .find(isProgram) ?? null
    );
}

function programFolders(): string[] {
    return [...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...SYSTEM_FOLDERS];
}

function versions(folder: string): string[] {
    try {
        return readdirSync(folder)
            .filter((name) => /^(postgresql@?)?[0-9.]*$/.test(name))
            .sort((a, b) => Number.parseFloat(b.replace(/\D+/, '')) - Number.parseFloat(a.replace(/\D+/, '')))
            .map((name) => join(folder, name, 'bin'));
    } catch {
        return [];
    }
}

function isProgram(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return true;
    } catch {
        return false;
    }
}
