import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checkout } from './checkout.ts';
import { timed } from './cpu-time.ts';
import { withBlank } from './host-import.ts';
import { scanFiles } from './scan-files.ts';
import type { Figure, Figures, Section } from './section.ts';
import { type ServedHosts, withServedHosts } from './served-hosts.ts';
import { type Shown, showsDuring } from './shows.ts';

const HOSTS = 200_000;

/** What is asked for meanwhile: behind the path of the workspace's hosts, so many times a second. */
interface Asked {
    readonly label: string;
    readonly rate: number;
    readonly path: string;
    readonly prefer?: string;
}

const COUNT = 'count=exact';

/** By their names among the figures. What is changed since a time is what the import has written by then. */
function kindsOf(since: string): Readonly<Record<string, Asked>> {
    return {
        show: { label: 'show of a host', rate: 20, path: '/1' },
        page: { label: 'limit=100', rate: 1, path: '?limit=100' },
        block: { label: 'limit=100 of a /16', rate: 1, path: '?limit=100&address=10.0.0.0/16' },
        updated: { label: 'limit=100 updated since the import began', rate: 1, path: `?limit=100&updated_since=${since}` },
        count: { label: 'limit=100 and count=exact', rate: 0.5, path: '?limit=100', prefer: COUNT },
        blockCount: { label: 'the same of a /8', rate: 0.5, path: '?limit=100&address=10.0.0.0/8', prefer: COUNT },
    };
}

/** While a file is imported, and while the same hosts come in another. */
const FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    ['first', 'others'].flatMap((which): [string, Figure][] => {
        const file = which === 'first' ? 'import' : 'the same hosts in a file with other bytes';
        const kinds = Object.entries(kindsOf('')).map(([name, { label }]): [string, Figure] => [
            `${which} ${name}`,
            { label: `  the longest ${label}, ms`, digits: 1, bar: '≤ 250' },
        ]);
        return [
            [`${which} seconds`, { label: `${file}, s`, digits: 1 }],
            ...kinds,
            [`${which} failed`, { label: '  answers that were no success', bar: '0' }],
        ];
    }),
);

/** How long pages, filters and counts take others while many hosts come into the embedded database of `serve`. */
export const importPages: Section = {
    name: 'import-pages',
    discarded: 0,
    mostRounds: 3,
    onRequest: true,

    async open({ scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const files = await scanFiles(hosts);
        return {
            measurements: [
                {
                    title: `import of ${hosts.toLocaleString('en')} hosts with 4 services each, JSON lines, embedded, beside pages, filters and counts`,
                    figures: FIGURES,
                    scanwire: async (checkout) => () => importedBesidePages(checkout, files.jsonl),
                },
            ],
            close: files.close,
        };
    },
};

function importedBesidePages(checkout: Checkout, file: string): Promise<Figures> {
    return withServedHosts(checkout, async (served) => {
        const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
        try {
            const first = await askedDuring(served, 'first', () => served.run('import', file));
            const blank = await withBlank(file, folder);
            return { ...first, ...(await askedDuring(served, 'others', () => served.run('import', blank))) };
        } finally {
            await rm(folder, { recursive: true });
        }
    });
}

/** The longest answer of each kind, in milliseconds. */
async function askedDuring({ url, key }: ServedHosts, which: string, task: () => Promise<unknown>): Promise<Figures> {
    const kinds = Object.entries(kindsOf(new Date().toISOString()));
    const importing = timed(task);
    const made = await Promise.all(
        kinds.map(async ([name, { rate, path, prefer }]) => {
            const shown: Shown = { url: `${url}/rest_api/v2/workspaces/1/hosts${path}`, key, ...(prefer !== undefined && { prefer }) };
            return { name, ...(await showsDuring(shown, rate, () => importing)) };
        }),
    );
    return {
        [`${which} seconds`]: await importing,
        ...Object.fromEntries(made.map(({ name, latencies }) => [`${which} ${name}`, Math.max(...latencies)])),
        [`${which} failed`]: made.reduce((sum, { failed }) => sum + failed, 0),
    };
}
