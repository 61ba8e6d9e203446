import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { dataFolder } from '../../cli/data-folder.ts';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));
const OURS = new URL('../../', import.meta.url).href;

const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, object>;
const DEPENDENCIES = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });

/** Says at the end, on stderr, which scripts the process has parsed, as its own debugger sees them. */
const REPORT = `data:text/javascript,${encodeURIComponent(`
    import { Session } from 'node:inspector';
    const urls = [];
    const session = new Session();
    session.connect();
    session.on('Debugger.scriptParsed', ({ params }) => urls.push(params.url));
    session.post('Debugger.enable');
    process.on('exit', () => process.stderr.write(JSON.stringify(urls)));
`)}`;

interface Loaded {
    /** What the server was asked. */
    readonly asked: readonly string[];
    /** Files of scanwire. */
    readonly files: readonly string[];
    /** Of those that scanwire depends on; tap brings others into every process. */
    readonly packages: readonly string[];
}

/** What a command loads that asks a running server. */
async function loadedBy(t: Test, ...args: readonly string[]): Promise<Loaded> {
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

    const child = spawn(process.execPath, ['--import', REPORT, ENTRY, ...args, '--data', path]);
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
    });
    const [code] = (await once(child, 'close')) as [number];
    t.equal(code, 0);
    const urls = JSON.parse(stderr) as readonly string[];
    return {
        asked,
        // What gathers the coverage of the tests is loaded into all of them.
        files: urls.flatMap((url) => (url.startsWith(OURS) && !url.startsWith(`${OURS}test/`) ? [url.slice(OURS.length)] : [])),
        packages: DEPENDENCIES.filter((name) => urls.some((url) => url.includes(`/node_modules/${name}/`))),
    };
}

for (const [args, request] of [
    [['keys', 'list'], 'GET /keys'],
    [['deliveries', 'list'], 'GET /deliveries?limit=100'],
    [['exporters', 'list'], 'GET /exporters'],
] as const) {
    t.test(`scanwire ${args.join(' ')} asks a running server without loading what only servers need`, async (t) => {
        const { asked, files, packages } = await loadedBy(t, ...args);
        t.same(asked, [request]);
        t.ok(files.includes('cli/scanwire.js'), 'what is loaded is seen');
        t.ok(files.length <= 20, `${files.length} files of ours: ${files.join(' ')}`);
        t.same(packages, ['commander']);
    });
}
