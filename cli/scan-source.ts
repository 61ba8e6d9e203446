import { openScanDatabase, type ScanDatabase } from '../adapters/scan-database/index.ts';
import { ScanwireError } from '../lib/errors.ts';
import type { System } from '../plugins/admin-console/system.ts';
import { readText } from './input-file.ts';

/** Where the REST API reads from in place of the data folder: a database of somebody else's. */
export interface ScanSource extends ScanDatabase {
    /** Without user and password. */
    readonly location: string;
}

const VARIABLE = 'SCAN_DATABASE_URL';
const OPTION = 'scan-database-file';

/**
 * The scan database that a file, or else the environment, names; null for none. Never an argument, which other users of the machine see.
 *
 * @throws ScanwireError `MISCONFIGURED` for what is no URL of PostgreSQL, or lacks tables; `INVALID_INPUT` for a file that cannot be read;
 *     `UNAVAILABLE`.
 */
export async function openScanSource(file: string | undefined, environment: NodeJS.ProcessEnv): Promise<ScanSource | null> {
    const text = file === undefined ? environment[VARIABLE] : (await readText(file)).trim();
    if (text === undefined) {
        return null;
    }

    const field = file === undefined ? VARIABLE : OPTION;
    const url = /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? new URL(text) : null;
    if (url === null) {
        // Never with the text, which holds a password.
        throw new ScanwireError('MISCONFIGURED', `${field} must hold a URL that begins with postgres://`, { field });
    }

    const database = await openScanDatabase({ connectionString: text }).catch((error: unknown) => {
        throw error instanceof ScanwireError && error.code === 'UNAVAILABLE'
            ? new ScanwireError('UNAVAILABLE', `${field}: ${error.message}`, { field, cause: error })
            : error;
    });
    return { ...database, location: `${url.host}${url.pathname}` };
}

/** A system that reads from there, takes no imports and removes nothing: what would be stored is not what is shown. */
export function readOnly(system: System, { inventory }: Pick<ScanDatabase, 'inventory'>): System {
    return {
        ...system,
        inventory: {
            ...inventory,
            importHosts: async () => refuse('import'),
            expireHosts: async () => refuse('expire hosts'),
            removeHosts: async () => refuse('remove hosts'),
            removeWorkspace: async () => refuse('remove a workspace'),
            moveHosts: async () => refuse('move hosts'),
            updateWorkspace: async () => refuse('change a workspace'),
            renameWorkspace: async () => refuse('rename a workspace'),
        },
    };
}

function refuse(what: string): never {
    throw new ScanwireError('CONFLICT', `Cannot ${what}: the REST API reads from a scan database, which is never written to`, {
        field: 'workspace',
    });
}

/** @throws ScanwireError `INVALID_INPUT` for an option that would store what is not shown then. */
export function assertOnlyRead(options: { readonly demo?: boolean; readonly enrich?: string }): void {
    const [option] = (['demo', 'enrich'] as const).filter((name) => options[name] !== undefined && options[name] !== false);
    if (option !== undefined) {
        throw new ScanwireError('INVALID_INPUT', `--${option} stores hosts, and those of a scan database are only read`, { field: option });
    }
}
