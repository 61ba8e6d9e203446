import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { dataFolder } from '../../cli/data-folder.ts';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));

/** Says at the end, on stderr, which packages were loaded as CommonJS (all the heavy ones are). */
const REPORT = `data:text/javascript,${encodeURIComponent(`
    import { createRequire } from 'node:module';
    const { cache } = createRequire('/');
    process.on('exit', () => {
        const names = Object.keys(cache).map((path) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(path)?.[1] ?? 'none');
        process.stderr.write(JSON.stringify([...new Set(names)]));
    });
`)}`;

t.test('asks a running server without loading what only servers need', async (t) => {
    const path = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(path, { recursive: true }));
    const folder = dataFolder(path);
    const asked: string[] = [];
    const server = createServer((request, response) => {
        asked.push(`${request.method} ${request.url}`);
        response.end('[]');
    }).listen(folder.socket);
    t.teardown(() => server.close());
    await once(server, 'listening');
    writeFileSync(folder.server, JSON.stringify({ pid: process.pid, socket: folder.socket }));

    const child = spawn(process.execPath, ['--import', REPORT, ENTRY, 'deliveries', 'list', '--data', path]);
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
    });
    const [code] = (await once(child, 'close')) as [number];
    t.equal(code, 0);
    t.same(asked, ['GET /deliveries?limit=100']);
    const loaded = JSON.parse(stderr) as string[];
    t.ok(loaded.includes('commander'));
    for (const heavy of [
        '@hapi/hapi',
        '@hapi/boom',
        'joi',
        'bullmq',
        'ioredis',
        'pg',
        'undici',
        'jose',
        'sax',
        'selfsigned',
        'cli-progress',
    ]) {
        t.notOk(loaded.includes(heavy), heavy);
    }
});
