import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';

/** The peer: a hand-written fastify route over `pg`, as most people would write it: all rows, one array. Prints its address. */
const [database = '', token = '', table = 'scanwire.hosts'] = process.argv.slice(2);
/** Of which a scan database knows nothing. */
const commercial = table === 'hosts' ? 'null as nexpose_data_asset_id, 0 as history_count' : 'nexpose_data_asset_id, history_count';
const pool = new pg.Pool({ connectionString: database, max: 8 });
const digest = createHash('sha256').update(token).digest('hex');
const app = Fastify();

app.get<{ Params: { workspace: string } }>('/rest_api/v2/workspaces/:workspace/hosts', async (request, reply) => {
    const given = createHash('sha256').update(String(request.headers.token)).digest('hex');
    if (given !== digest) {
        return reply.code(403).send({ statusCode: 403, error: 'Forbidden', message: 'Forbidden' });
    }

    const { rows } = await pool.query(
        `select id, workspace_id, created_at, updated_at, host(address) as address, mac, comm, name, state, os_name, os_flavor, os_sp, os_lang, arch,
            purpose, info, comments, scope, virtual_host, note_count, vuln_count, service_count, host_detail_count, exploit_attempt_count, cred_count,
            ${commercial}, detected_arch
        from ${table} where workspace_id = $1 order by id`,
        [Number(request.params.workspace)],
    );
    return rows;
});

const address = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${address}\n`);
