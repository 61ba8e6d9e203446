import type { EmbeddedDatabase } from '../../../adapters/pglite/index.ts';
import { type Maintenance, type MaintenanceOptions, maintain } from '../../../adapters/pglite/maintenance.ts';

type Query = (text: string, values?: unknown[]) => Promise<unknown>;

interface Maintained extends Maintenance {
    tick(): void;
}

/** The maintenance of what answers so, whose rounds come with each `tick`. */
export async function maintained(query: Query, options: Partial<MaintenanceOptions> = {}): Promise<Maintained> {
    let task = (): void => {};
    const maintenance = await maintain({
        database: { query } as Pick<EmbeddedDatabase, 'query'>,
        requests: () => 0,
        ticker(given) {
            task = given;
            return () => {};
        },
        ...options,
    });
    return { ...maintenance, tick: (): void => task() };
}

/** What a statement ends with that gives way. */
export function cutOff(): Error {
    return Object.assign(new Error('canceling statement due to user request'), { code: '57014' });
}
