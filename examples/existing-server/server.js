import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import * as Boom from '@hapi/boom';
import Hapi from '@hapi/hapi';
import pg from 'pg';
import { transaction } from 'scanwire/postgres';
import { addScanwire } from './add-scanwire.js';

export const TABLES = `
    create table if not exists site (
        id serial primary key, name text not null,
        created_at timestamptz not null default now(), updated_at timestamptz not null default now()
    );
    create table if not exists machine (
        id serial primary key, site_id integer not null references site, ip inet not null, label text not null, os text,
        created_at timestamptz not null default now(), updated_at timestamptz not null default now()
    );
    create table if not exists finding (id uuid primary key, machine_id integer not null references machine, title text not null, found_at timestamptz not null);`;

/** The company's server as it was before, and one line for scanwire. */
export async function buildServer({ pool, port = 3000, sessions, ...scanwire }) {
    await pool.query(TABLES);
    const server = Hapi.server({ host: '127.0.0.1', port });

    server.auth.scheme('session', () => ({
        authenticate(request, h) {
            const user = sessions.get(request.headers['x-session']);
            return user === undefined ? h.unauthenticated(Boom.unauthorized('Sign in first')) : h.authenticated({ credentials: { user } });
        },
    }));
    server.auth.strategy('session', 'session');
    server.auth.default('session');

    await addScanwire(server, { pool, ...scanwire });

    server.route([
        { method: 'GET', path: '/sites', handler: async () => (await pool.query('select id, name from site order by id')).rows },
        {
            method: 'POST',
            path: '/machines/{id}/findings',
            handler: ({ params, payload }) => addFinding(server, pool, params.id, payload.title),
        },
    ]);
    return server;
}

/** The finding and the event about it exist together or not at all. */
async function addFinding(server, pool, machineId, title) {
    const finding = { id: randomUUID(), foundAt: new Date() };
    return await transaction(pool, async (client) => {
        const { rows } = await client.query('select label from machine where id = $1', [machineId]);
        const [machine] = rows;
        if (machine === undefined) {
            throw Boom.notFound('No such machine');
        }

        await client.query('insert into finding values ($1, $2, $3, $4)', [finding.id, machineId, title, finding.foundAt]);
        await server.plugins['webhook-exporter'].publish('idr_investigation_created', investigation(finding, title, machine), {
            tx: client,
        });
        return { id: finding.id };
    });
}

function investigation({ id, foundAt }, title, { label }) {
    const link = `https://assets.example.com/findings/${id}`;
    return {
        timestamp: foundAt,
        title,
        link,
        investigationId: id,
        investigationRrn: `rrn:acme:finding:${id}`,
        actors: { users: [], assets: [{ hostname: label, shortname: label, link }] },
    };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
    pool.on('error', (error) => console.error('database:', error.message));
    const sealingKey = Buffer.from(process.env.SEALING_KEY ?? '', 'base64');
    const server = await buildServer({ pool, sealingKey, redisUrl: process.env.REDIS_URL, sessions: new Map([['demo', 'Ada']]) });
    await server.start();
    console.log(`Listening at ${server.info.uri}`);
}
