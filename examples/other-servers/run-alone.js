import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import pg from 'pg';

/** Runs a server when its file is the program: `DATABASE_URL=… SEALING_KEY=… node express.js`, until SIGTERM or SIGINT. */
export async function runAlone(module, startServer) {
    if (module !== pathToFileURL(process.argv[1] ?? '').href) {
        return;
    }

    const { DATABASE_URL, SEALING_KEY = '', PORT = '3000', EGRESS_ALLOW } = process.env;
    const pool = new pg.Pool({ connectionString: DATABASE_URL });
    pool.on('error', (error) => console.error('database:', error.message));
    const sealingKey = Buffer.from(SEALING_KEY, 'base64');
    const egress = { allow: EGRESS_ALLOW ? EGRESS_ALLOW.split(',') : [] };
    const { scanwire, url, stop } = await startServer({ pool, port: Number(PORT), sealingKey, egress });
    const { key } = await scanwire.createKey('first key');
    console.log(`curl -H 'token: ${key}' ${url}/scan/rest_api/v2/workspaces`);

    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
    await stop();
    await pool.end();
}
