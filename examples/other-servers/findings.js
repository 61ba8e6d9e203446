import { randomUUID } from 'node:crypto';
import { transaction } from 'scanwire/postgres';

export const TABLE = 'create table if not exists finding (id uuid primary key, title text not null, found_at timestamptz not null)';

/** The finding and the event about it exist together or not at all. */
export async function addFinding(pool, publish, title) {
    const finding = { id: randomUUID(), foundAt: new Date() };
    return await transaction(pool, async (client) => {
        // First, so that a title that is none is refused by a message that says so.
        await publish('idr_investigation_created', investigation(finding, title), { tx: client });
        await client.query('insert into finding values ($1, $2, $3)', [finding.id, title, finding.foundAt]);
        return { id: finding.id };
    });
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
