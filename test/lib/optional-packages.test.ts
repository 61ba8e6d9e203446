import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { isUsable, optionalPackage, packageProblem, TRIED } from '../../lib/optional-packages.ts';

const withCode = (code: unknown): Error => Object.assign(new Error('secret text'), { code });

t.test('names a package that is not installed, and the line that installs it', async (t) => {
    const loading = (load: () => Promise<object>): Promise<object> => optionalPackage('pg', 'DATABASE_URL', load);
    t.equal(await loading(async () => t), t);
    const missing = Object.assign(new Error('secret path'), { code: 'ERR_MODULE_NOT_FOUND' });
    await t.rejects(
        loading(() => Promise.reject(missing)),
        { code: 'MISCONFIGURED', message: 'DATABASE_URL needs the package pg: npm install pg', cause: missing },
    );
    await t.rejects(
        loading(() => Promise.reject(withCode('ERR_DLOPEN_FAILED'))),
        { code: 'MISCONFIGURED', message: 'Cannot load pg for DATABASE_URL (ERR_DLOPEN_FAILED)' },
    );
});

/*
 * A host that has other versions. Node finds these below the folder of this test, with no more of them than what says their version; the others
 * stay those of this project.
 */
const VERSIONS: Readonly<Record<string, string>> = {
    '@modelcontextprotocol/sdk': '1.24.3',
    '@opentelemetry/api': '0.24.0',
    '@picocss/pico': '1.5.13',
    'htmx.org': '2.0.4',
    'prom-client': '12.10.9',
    'rate-limiter-flexible': '0.25.2',
    'swagger-ui-dist': '4.19.1',
};
const folder = t.testdir();

function install(name: string, version: string | undefined): void {
    const at = join(folder, 'node_modules', name);
    mkdirSync(join(at, 'server'), { recursive: true });
    writeFileSync(join(at, 'package.json'), JSON.stringify({ name, version, main: 'index.js' }));
    writeFileSync(join(at, 'index.js'), '');
    // Some packages have such files below, which say nothing of name and version.
    writeFileSync(join(at, 'server', 'package.json'), '{ "type": "module" }');
    writeFileSync(join(at, 'server', 'index.js'), '');
}

const parentURL = pathToFileURL(join(folder, 'host.js')).href;
const hooks = `const names = ${JSON.stringify(Object.keys(VERSIONS))};
export const resolve = (name, context, next) =>
    next(name, names.some((each) => name === each || name.startsWith(each + '/')) ? { ...context, parentURL: '${parentURL}' } : context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

t.test('names the version that is too old, the one that is needed, and the line that installs it', async (t) => {
    t.strictSame(Object.keys(VERSIONS), [...TRIED.keys()], 'all of them');
    for (const [name, version] of Object.entries(VERSIONS)) {
        install(name, version);
        const { from, to } = TRIED.get(name) as { from: string; to: number };
        const message = `Metrics needs the package ${name} from ${from} on, and ${version} is installed: npm install ${name}@${to}`;
        t.match(packageProblem(name, 'Metrics'), { code: 'MISCONFIGURED', message });
        const loading = optionalPackage(name, 'Metrics', () => Promise.reject(new Error('loaded all the same')));
        await t.rejects(loading, { code: 'MISCONFIGURED', message });
    }
});

t.test('does without what is too old where it may, and has the process warn of it', async (t) => {
    const warnings = warned(t);
    t.notOk(isUsable('htmx.org', 'The console'));
    await turn();
    const message = 'The console needs the package htmx.org from 4.0.0 on, and 2.0.4 is installed: npm install htmx.org@4';
    t.strictSame(warnings, [message]);
});

t.test('takes one that does not say its version, as one of the host in a workspace may', async (t) => {
    install('htmx.org', undefined);
    t.equal(packageProblem('htmx.org', 'The console'), null);
});

t.test('tries what is newer than what was tried, and has the process warn of it once', async (t) => {
    const warnings = warned(t);
    install('prom-client', '16.2.0');
    t.equal(await optionalPackage('prom-client', 'Metrics', async () => t), t);
    t.ok(isUsable('prom-client', 'Metrics'));
    await turn();
    t.strictSame(warnings, ['Metrics was never tried with prom-client 16.2.0; a version that was: npm install prom-client@15']);
});

t.test('takes the oldest that works', async (t) => {
    for (const [name, { from }] of TRIED) {
        install(name, from);
        t.equal(packageProblem(name, 'Metrics'), null, `${name} ${from}`);
    }
});

t.test('every version of an optional peer can be installed beside scanwire, and the page says which work', (t) => {
    const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, object>;
    t.strictSame(Object.keys(peerDependenciesMeta ?? {}), [...TRIED.keys()]);
    t.match(peerDependencies, Object.fromEntries([...TRIED.keys()].map((name) => [name, '*'])));
    const page = readFileSync('docs/errors.md', 'utf8');
    for (const [name, { from, to }] of TRIED) {
        const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\``)) ?? '';
        const [, , oldest, newest] = row.split('|').map((cell) => cell.trim());
        t.strictSame([oldest, newest], [from, `${to}.x`], name);
    }
    t.end();
});

function warned(t: Test): readonly string[] {
    const warnings: string[] = [];
    const listener = ({ message }: Error): void => void warnings.push(message);
    process.on('warning', listener);
    t.teardown(() => process.off('warning', listener));
    return warnings;
}
