import { rmSync } from 'node:fs';
import pg from 'pg';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { findPostgres } from '../support/find-program.ts';
import { postgresServer } from '../support/postgres-server.ts';
import { redisServer } from '../support/redis-server.ts';
import { folderOfServers } from '../support/temporary-folders.ts';

t.test('a Redis whose disk is full refuses writes until there is room again', async (t) => {
    const redis = await redisServer(t.testdir());
    t.teardown(() => redis.kill());
    t.match(await redis.command('SET before 1'), /^\+OK/);
    await redis.fillDisk(true);
    await until(async () => (await redis.command('SET meanwhile 1')).startsWith('-MISCONF Errors writing to the AOF file: File too large'));
    t.match(await redis.command('GET before'), /^\$1/, 'what is there can be read');
    await redis.fillDisk(false);
    await until(async () => (await redis.command('SET after 1')).startsWith('+OK'));
});

t.test('a PostgreSQL whose disk is full refuses what needs room until there is some again', async (t) => {
    const programs = findPostgres();
    const folder = folderOfServers('scanwire-disk');
    const postgres = await postgresServer(folder, { programs: programs as string, settings: ['fsync=off'], init: ['--wal-segsize', '1'] });
    const client = new pg.Client({ connectionString: postgres.url });
    client.on('error', () => {});
    t.teardown(async () => {
        await client.end();
        await postgres.stop();
        rmSync(folder, { recursive: true, force: true });
    });
    await client.connect();
    const fill = 'insert into rows select repeat($1, 100) from generate_series(1, 20000)';
    await client.query('create table rows (text text)');
    await client.query(fill, ['x']);

    await postgres.limitFiles(2 ** 20);
    await t.rejects(client.query(fill, ['y']), { message: /^could not extend file .*: File too large$/ });
    t.match(await client.query('select count(*)::int as count from rows'), { rows: [{ count: 20_000 }] }, 'what is there can be read');
    await postgres.limitFiles(null);
    await client.query(fill, ['z']);
    await client.query('checkpoint');

    await postgres.limitFiles(1);
    await t.rejects(client.query(fill, ['z']), 'it ends when it cannot write its log');
    await postgres.stop('SIGQUIT');
    await postgres.start();
    const again = new pg.Client({ connectionString: postgres.url });
    await again.connect();
    t.match(await again.query('select count(*)::int as count from rows'), { rows: [{ count: 40_000 }] }, 'what was committed is there');
    await again.end();
});
