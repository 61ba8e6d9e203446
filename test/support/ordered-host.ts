import pg from 'pg';
import type { Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { postgresStores } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { migratedDatabase } from './migrated-database.ts';

/** A host over a database of its own, with an ordered exporter to which nothing is sent. */
export interface OrderedHost {
    readonly engine: Webhooks;
    /** Of the database. */
    readonly url: string;
    /** The pool of the engine. */
    readonly pool: pg.Pool;
    /** One connection more, for what is looked at. */
    readonly watching: pg.Pool;
}

/** @param connections How many the engine has. */
export async function orderedHost(t: Test, connections: number): Promise<OrderedHost> {
    const { url, drop } = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: url, max: connections });
    const watching = new pg.Pool({ connectionString: url, max: 1 });
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const engine = webhooks({
        ...postgresStores({ pool }).webhooks,
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: Buffer.alloc(32, 7) } }),
        guard,
        sender: httpSender({ guard }),
        onError: () => {},
    });
    t.teardown(async () => {
        await engine.close();
        await Promise.all([pool.end(), watching.end()]);
        await drop();
    });
    const { exporter } = await engine.exporters.create({ url: 'http://127.0.0.1:9/', ordered: true });
    await engine.exporters.start(exporter.id, { wait: false });
    await engine.exporters.pause(exporter.id);
    return { engine, url, pool, watching };
}
