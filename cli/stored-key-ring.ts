import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { ScanwireError } from '../lib/errors.ts';
import { assertOpens, KEY_BYTES, type KeyRing, keyRing } from '../lib/keys/key-ring.ts';
import { sealedKeys } from '../lib/keys/sealed-keys.ts';
import { sealedForExporters } from '../lib/webhooks/exporters/exporter-resealing.ts';
import { type DataFolder, dataFolderExists, readIfPresent, readOrCreate } from './data-folder.ts';
import type { Stores } from './stores.ts';

/** The variable that brings the key ring to processes without the data folder: the text of its `key-ring.json`. */
const KEY_RING_VARIABLE = 'SCANWIRE_KEY_RING';

const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/;

/**
 * The key ring of `SCANWIRE_KEY_RING`, else of the data folder, where it is made once.
 *
 * @throws ScanwireError `MISCONFIGURED` when it is damaged, or missing beside a database; never with any of it.
 */
export async function storedKeyRing(folder: DataFolder, environment: NodeJS.ProcessEnv): Promise<KeyRing> {
    const text = environment[KEY_RING_VARIABLE];
    if (text !== undefined) {
        return parse(text, KEY_RING_VARIABLE);
    }

    // In this order, since another process that starts now makes the ring first.
    const hasDatabase = environment.DATABASE_URL === undefined && existsSync(folder.database);
    if (hasDatabase && (await readIfPresent(folder.keyRing)) === null) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `${folder.keyRing} is missing, which sealed the database beside it: put it back from its copy, or set ${KEY_RING_VARIABLE}`,
            { field: 'data' },
        );
    }

    return parse(await readOrCreate(folder.keyRing, newKeyRing), folder.keyRing);
}

/** The same for a process that must not make one: a worker with a key ring of its own could open nothing. */
export async function existingKeyRing(folder: DataFolder, environment: NodeJS.ProcessEnv): Promise<KeyRing> {
    const isHere = environment[KEY_RING_VARIABLE] !== undefined || (await dataFolderExists(folder));
    if (!isHere || (environment[KEY_RING_VARIABLE] === undefined && (await readIfPresent(folder.keyRing)) === null)) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `No key ring: set ${KEY_RING_VARIABLE} to the text of the server's key-ring.json, or --data to its folder`,
            { field: KEY_RING_VARIABLE },
        );
    }

    return storedKeyRing(folder, environment);
}

/** Two rings that were made apart have no id in common, so what one sealed is never taken for the other's. */
function newKeyRing(): string {
    const id = `k-${randomBytes(4).toString('hex')}`;
    return `${JSON.stringify({ current: id, keys: { [id]: randomBytes(KEY_BYTES).toString('base64') } })}\n`;
}

function parse(text: string, source: string): KeyRing {
    const damaged = (reason: string): ScanwireError =>
        new ScanwireError('MISCONFIGURED', `The key ring in ${source} ${reason}`, { field: source });

    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch {
        throw damaged('is not valid JSON');
    }

    const { current, keys } = (value ?? {}) as { current?: unknown; keys?: unknown };
    if (typeof current !== 'string' || typeof keys !== 'object' || keys === null) {
        throw damaged('must have the form {"current": id, "keys": {id: base64}}');
    }

    const decoded = Object.entries(keys).map(([id, key]) => {
        if (typeof key !== 'string' || !BASE64_KEY.test(key)) {
            throw damaged('has a key that is not 32 bytes in base64');
        }

        return [id, Buffer.from(key, 'base64')] as const;
    });
    try {
        return keyRing({ current, keys: Object.fromEntries(decoded) });
    } catch (error) {
        throw damaged(`cannot be used: ${(error as ScanwireError).message}`);
    }
}

/** Whether a ring would be made where one is asked for. */
export async function lacksKeyRing(folder: DataFolder, environment: NodeJS.ProcessEnv): Promise<boolean> {
    return environment[KEY_RING_VARIABLE] === undefined && (await readIfPresent(folder.keyRing)) === null;
}

/**
 * Refuses a key ring beside a database that another one sealed: what it sealed there the other processes could not open, and
 * their next start would be refused.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the sealing key.
 */
export async function assertRingFits({ apiKeys: keys, webhooks: { exporters } }: Stores, keyRing: KeyRing): Promise<void> {
    const texts = await Promise.all([sealedKeys(keys), sealedForExporters(exporters, new Date())]);
    try {
        assertOpens(keyRing, texts.flat());
    } catch (error) {
        const reason = (error as ScanwireError).message;
        throw new ScanwireError('MISCONFIGURED', `${reason}. Name the folder of the right one with --data, or set SCANWIRE_KEY_RING`, {
            field: 'data',
            cause: error,
        });
    }
}
