import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { parseReceiverUrl } from '../../lib/webhooks/exporters/receiver-url.ts';
import { checkAdditionalHeaders } from '../../lib/webhooks/messages/message-headers.ts';
import { vendorNamed } from '../../lib/webhooks/messages/signature.ts';

/*
 * A regular expression that backtracks turns a long text of a stranger into minutes of CPU. All of the sources' own, be they written as
 * literals or put together when a module is loaded, must take linear time.
 */

// Else a native program would be asked where there is one, whose limits of time differ from machine to machine.
process.env.RECHECK_BACKEND = 'pure';
const { checkSync } = await import('recheck');

const PATIENCE = 60_000;

/** The verdicts take a minute, so those of one version of the checker are kept; `CHECK_EXPRESSIONS=all` takes and keeps them again. */
const KEPT = 'test/attack/linear-expressions.json';
/** So many may be new since: each takes a third of a second. */
const MOST_NEW = 10;
const version = (createRequire(import.meta.url)('recheck/package.json') as { version: string }).version;
const kept = JSON.parse(readFileSync(KEPT, 'utf8')) as { readonly recheck: string; readonly linear: readonly string[] };
const all = process.env.CHECK_EXPRESSIONS === 'all';
const known = new Set(all || kept.recheck !== version ? [] : kept.linear);

interface Expression {
    /** `lib/x.ts:7`. */
    readonly at: string;
    readonly source: string;
    readonly flags: string;
}

const root = process.cwd();
const { literals, constructed } = written();
const loaded = loadedExpressions();

t.test('every regular expression takes linear time', (t) => {
    t.ok(literals.length > 50, `${literals.length} literals were found`);
    t.ok(loaded.length > 5, `${loaded.length} were put together as the modules were loaded`);
    const seen = new Set<string>();
    const taken = new Set<string>();
    for (const { at, source, flags } of [...literals, ...loaded]) {
        const text = `/${source}/${flags}`;
        const isNew = !seen.has(text) && !known.has(text);
        seen.add(text);
        if (isNew) {
            taken.add(text);
            // Most are decided by an automaton; what looks ahead or back only by trying.
            const exact = checkSync(source, flags, { timeout: PATIENCE, checker: 'automaton' });
            const verdict = exact.status === 'unknown' ? checkSync(source, flags, { timeout: PATIENCE, randomSeed: 0 }) : exact;
            const why = verdict.status === 'unknown' ? verdict.error.kind : verdict.complexity.summary;
            t.equal(verdict.status, 'safe', `${at} ${text.slice(0, 100)} (${why})`);
        }
    }

    t.ok(all || taken.size <= MOST_NEW, `${taken.size} are not in ${KEPT}: take them once with CHECK_EXPRESSIONS=all`);
    if (all && t.passing()) {
        writeFileSync(KEPT, `${JSON.stringify({ recheck: version, linear: [...seen].sort() }, null, 4)}\n`);
    }
    t.end();
});

t.test('none is put together where the check cannot see it', (t) => {
    const known = new Set(loaded.map(({ at }) => at));
    t.strictSame(
        constructed.filter((at) => !known.has(at)),
        [],
        'put it together at the top of its module',
    );
    t.end();
});

t.test('the check finds one that is quadratic, and one that is exponential', (t) => {
    t.equal(checkSync('[ \\t]+$', '').status, 'vulnerable');
    t.equal(checkSync('^(a+)+$', '').status, 'vulnerable');
    t.end();
});

t.test('blanks within a header value or a URL cost no more than other characters', (t) => {
    const blanks = `a${' '.repeat(200_000)}a`;
    const before = process.cpuUsage();
    t.throws(() => checkAdditionalHeaders([['x-own', blanks]], vendorNamed('Vendor')), { message: /at most/ });
    t.throws(() => parseReceiverUrl(`https://hooks.example/${blanks}`), { code: 'INVALID_INPUT' });
    const { user, system } = process.cpuUsage(before);
    t.ok(user + system < 500_000, `${(user + system) / 1000} ms of CPU`);
    t.end();
});

/** The literals of the sources, and where a `RegExp` is constructed, as the compiler parses them. */
function written(): { readonly literals: Expression[]; readonly constructed: string[] } {
    const api = new API({ cwd: root });
    const project = api.updateSnapshot({ openProjects: [`${root}/tsconfig.build.json`] }).getProjects()[0];
    const literals: Expression[] = [];
    const constructed: string[] = [];
    for (const name of project?.program.getSourceFileNames() ?? []) {
        const file = /^(?:lib|plugins|adapters|cli)\//.test(relative(root, name)) ? project?.program.getSourceFile(name) : undefined;
        file?.forEachChild(function visit(node: Node): void {
            const at = () => `${relative(root, name)}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
            if (node.kind === SyntaxKind.RegularExpressionLiteral) {
                const text = node.getText(file);
                const end = text.lastIndexOf('/');
                literals.push({ at: at(), source: text.slice(1, end), flags: text.slice(end + 1) });
            } else if (/^(?:new )?RegExp\(/.test(node.getText(file))) {
                constructed.push(at());
            }

            node.forEachChild(visit);
        });
    }

    api.close();
    return { literals, constructed: [...new Set(constructed)] };
}

/** What the modules put together while they are loaded, by a process that loads them all. */
function loadedExpressions(): Expression[] {
    const compiled = fileURLToPath(new URL('../../', import.meta.url));
    const program = `
        import { readdirSync } from 'node:fs';
        const found = [];
        const make = (native, [source, flags]) => {
            const made = new native(source, flags);
            const [, at] = /((?:lib|plugins|adapters|cli)\\/[^:]*\\.ts:\\d+):\\d+\\)?$/m.exec(new Error().stack) ?? [];
            found.push({ at: at ?? '', source: made.source, flags: made.flags });
            return made;
        };
        const native = RegExp;
        globalThis.RegExp = new Proxy(native, { construct: make, apply: (of, _, given) => make(of, given) });
        const runs = /^cli.scanwire.js$|^adapters.pglite.(?:thread|make-template).js$/;
        for (const root of ['lib', 'plugins', 'adapters', 'cli']) {
            for (const name of readdirSync(${JSON.stringify(compiled)} + root, { recursive: true })) {
                if (name.endsWith('.js') && !runs.test(root + '/' + name)) {
                    await import(${JSON.stringify(compiled)} + root + '/' + name);
                }
            }
        }

        process.stdout.write(JSON.stringify(found.filter(({ at }) => at !== '')), () => process.exit());`;
    return JSON.parse(
        execFileSync(process.execPath, ['--enable-source-maps', '--input-type=module', '--eval', program], { encoding: 'utf8' }),
    ) as Expression[];
}
