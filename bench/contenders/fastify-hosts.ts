import { createHash, randomBytes } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';

/**
 * The peer: hand-written fastify routes over `pg`, as most people would write them: of an index all rows, one array. The key is in memory.
 * Prints the address of the index and the key.
 */
const [database = '', table = '', workspace = ''] = process.argv.slice(2);
/** Of which a scan database knows nothing. */
const commercial = table === 'hosts' ? 'null as nexpose_data_asset_id, 0 as history_count' : 'nexpose_data_asset_id, history_count';
const SELECT = `select id, workspace_id, created_at, updated_at, host(address) as address, mac, comm, name, state, os_name, os_flavor, os_sp,
        os_lang, arch, purpose, info, comments, scope, virtual_host, note_count, vuln_count, service_count, host_detail_count,
        exploit_attempt_count, cred_count, ${commercial}, detected_arch
    from ${table}`;
const pool = new pg.Pool({ connectionString: database, max: 8 });
const key = randomBytes(32).toString('hex');
const digest = createHash('sha256').update(key).digest('hex');
const app = Fastify();

app.addHook('onRequest', async (request, reply) => {
    const given = createHash('sha256').update(String(request.headers.token)).digest('hex');
    if (given !== digest) {
        await reply.code(403).send({ statusCode: 403, error: 'Forbidden', message: 'Forbidden' });
    }
});

app.get<{ Params: { workspace: string } }>('/rest_api/v2/workspaces/:workspace/hosts', async ({ params }) => {
    const { rows } = await pool.query(`${SELECT} where workspace_id = $1 order by id`, [Number(params.workspace)]);
    return rows;
});

app.get<{ Params: { workspace: string; host: string } }>('/rest_api/v2/workspaces/:workspace/hosts/:host', async ({ params }, reply) => {
    const { rows } = await pool.query(`${SELECT} where workspace_id = $1 and id = $2`, [Number(params.workspace), Number(params.host)]);
    return rows[0] ?? reply.code(404).send({ statusCode: 404, error: 'Not Found', message: 'Not Found' });
});

const address = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${address}/rest_api/v2/workspaces/${workspace}/hosts ${key}\n`);
