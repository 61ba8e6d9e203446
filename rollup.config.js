/*
 * Makes `dist/` of the modules that TypeScript has written. Each stays a file at its place, but for those that a host with the REST API and its
 * keys loads at the start: they are put together into few, since to find, open and link a file takes Node longer than to run it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const MODULES = resolve('build/modules');

/** What such a host imports, and a trial of it: modules of one folder that the same ones of these need go into one file. */
const START = ['plugins/token-auth', 'plugins/rest-api-v2', 'lib/keys', 'lib/license', 'adapters/memory'];

/** Takes a tenth of the start: what is also needed where nobody loads it stays apart. */
const COSTLY = 'joi';

const { exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = [...Object.values(exports).flatMap(({ default: path }) => path ?? []), ...Object.values(bin)].map((path) =>
    path.replace(/^(?:\.\/)?dist/, MODULES),
);

/** The names of the files that modules are put into, by the ids of the modules. */
function filesAtStart(getModuleIds, getModuleInfo) {
    const reached = (id, found = new Set()) => {
        if (!found.has(id)) {
            found.add(id);
            for (const imported of getModuleInfo(id)?.importedIds ?? []) {
                reached(imported, found);
            }
        }
        return found;
    };
    const ids = [...getModuleIds()];
    const loadedLater = ids.filter((id) => getModuleInfo(id)?.dynamicImporters.length > 0);
    const withoutCostly = [...entries, ...loadedLater].map((id) => reached(id)).filter((found) => !found.has(COSTLY));
    const starts = START.map((folder) => ({ name: basename(folder), needed: reached(join(MODULES, folder, 'index.js')) }));

    return new Map(
        ids.flatMap((id) => {
            const names = starts.filter(({ needed }) => needed.has(id)).map(({ name }) => name);
            const isApart = !id.startsWith(MODULES) || names.length === 0 || withoutCostly.some((found) => found.has(id));
            const [folder] = id.slice(MODULES.length + 1).split('/');
            return isApart ? [] : [[id, ['start/of', ...names, folder].join('-')]];
        }),
    );
}

/** Asked for module by module, once all are read. */
let files;

export default {
    input: Object.fromEntries(
        readdirSync(MODULES, { encoding: 'utf8', recursive: true })
            .filter((name) => name.endsWith('.js'))
            .map((name) => [name.replace(/\.js$/, ''), join(MODULES, name)]),
    ),
    external: (id) => !/^[./]/.test(id),
    preserveEntrySignatures: 'strict',
    treeshake: false,
    onLog(level, log) {
        // What TypeScript writes for `using` begins with a `this` that is not there, and says so itself.
        if (level === 'warn' && log.code !== 'THIS_IS_UNDEFINED') {
            throw new Error(log.message);
        }
    },
    output: {
        dir: 'dist',
        format: 'es',
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        hoistTransitiveImports: false,
        minifyInternalExports: false,
        onlyExplicitManualChunks: true,
        generatedCode: 'es2015',
        manualChunks(id, { getModuleIds, getModuleInfo }) {
            files ??= filesAtStart(getModuleIds, getModuleInfo);
            return files.get(id);
        },
    },
};
