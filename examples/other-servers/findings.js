import { randomUUID } from 'node:crypto';

export const TABLE = 'create table if not exists finding (id uuid primary key, title text not null, found_at timestamptz not null)';

/** The finding and the event about it exist together or not at all. */
export async function addFinding(pool, publish, title) {
    const finding = { id: randomUUID(), foundAt: new Date() };
    const client = await pool.connect();
    try {
        await client.query('begin');
        await client.query('insert into finding values ($1, $2, $3)', [finding.id, title, finding.foundAt]);
        await publish('idr_investigation_created', investigation(finding, title), { tx: client });
        await client.query('commit');
        return { id: finding.id };
    } catch (error) {
        await client.query('rollback');
        throw error;
    } finally {
        client.release();
    }
}

function investigation({ id, foundAt }, title) {
    return {
        timestamp: foundAt,
        title,
        link: `https://assets.example.com/findings/${id}`,
        investigationId: id,
        investigationRrn: `rrn:acme:finding:${id}`,
        actors: { users: [], assets: [] },
    };
}
