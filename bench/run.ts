/*
 * `npm run bench`: what scanwire costs beside its peers, in turn or both at once; `-- --help` says how. `--against` measures by the same
 * bench, and says which figures are worse; what `--profile docs/pace.md` writes is set by `npm run format`.
 */
import { commander } from '../cli/command.ts';
import { count, scriptCommand } from '../test/support/script-command.ts';
import { testServers } from '../test/support/servers.ts';
import { bulk } from './bulk.ts';
import { capture } from './capture.ts';
import { ownAndOtherCheckout, ownCheckout } from './checkout.ts';
import { committed } from './committed.ts';
import { summaryOf, tablesOf } from './comparison.ts';
import { deliveries } from './deliveries.ts';
import { distant } from './distant.ts';
import { exposed } from './exposed.ts';
import { fanOut } from './fan-out.ts';
import { formats } from './formats.ts';
import { embeddedImport, imports, millionImport } from './host-import.ts';
import { hostIndex } from './host-index.ts';
import { million } from './host-million.ts';
import { importPages } from './host-pages.ts';
import { requests, show } from './host-requests.ts';
import { idle } from './idle.ts';
import { kept, keptMillion } from './kept.ts';
import { listening } from './listening.ts';
import { lists } from './lists.ts';
import { neighbours } from './neighbours.ts';
import { observed } from './observed.ts';
import { order } from './order.ts';
import { overhead } from './overhead.ts';
import { pace } from './pace.ts';
import { PROFILE_SETTINGS, writeProfile } from './profile.ts';
import { publishRoute } from './publish-route.ts';
import { memory, records } from './records.ts';
import { backlog, recovery } from './recovery.ts';
import { replay } from './replay.ts';
import { retention } from './retention.ts';
import { screens } from './screens.ts';
import { type Measured, measure, type Section } from './section.ts';
import { host, serve } from './start-up.ts';
import { subscriptions } from './subscriptions.ts';

const SECTIONS: readonly Section[] = [
    deliveries,
    pace,
    kept,
    keptMillion,
    committed,
    distant,
    bulk,
    publishRoute,
    formats,
    subscriptions,
    fanOut,
    order,
    observed,
    overhead,
    listening,
    replay,
    idle,
    neighbours,
    retention,
    recovery,
    backlog,
    hostIndex,
    million,
    requests,
    show,
    imports,
    embeddedImport,
    importPages,
    millionImport,
    records,
    memory,
    capture,
    host,
    serve,
    exposed,
    screens,
    lists,
];

const asked = scriptCommand('bench', 'Measures what scanwire costs beside its peers.')
    .argument('[sections...]', 'only these')
    .option('--all', 'also those with a star, which take minutes each')
    .option('--rounds <count>', 'of each measurement', count, 5)
    .option('--scale <factor>', 'of what is counted: 0.1 shows that all works', factor, 1)
    .option('--against <path>', 'measures beside the package of another, compiled checkout')
    .option('--profile <file>', 'measures nothing else, and writes where the time of a delivery goes')
    .addHelpText('after', `\nSections: ${SECTIONS.map(({ name, onRequest = false }) => `${name}${onRequest ? '*' : ''}`).join(', ')}`)
    .parse();
interface Options {
    readonly all?: boolean;
    readonly rounds: number;
    readonly scale: number;
    readonly against?: string;
    readonly profile?: string;
}
const { all = false, rounds, scale, against, profile } = asked.opts<Options>();
const names = asked.args;
const unknown = names.filter((name) => !SECTIONS.some((section) => section.name === name));
if (unknown.length > 0) {
    asked.error(`error: unknown section ${unknown.join(', ')}; there are ${SECTIONS.map(({ name }) => name).join(', ')}`);
}

const wanted = SECTIONS.filter(({ name, onRequest = false }) => (names.length === 0 ? all || !onRequest : names.includes(name)));

function factor(text: string): number {
    if (!(Number(text) > 0)) {
        throw new commander.InvalidArgumentError('It must be a number above 0.');
    }

    return Number(text);
}

const [own, other] = against === undefined ? [await ownCheckout()] : await ownAndOtherCheckout(against);
const services = await testServers({
    durable: true,
    settings: ['shared_preload_libraries=pg_stat_statements', ...(profile === undefined ? [] : PROFILE_SETTINGS)],
});
Object.assign(process.env, services.env);

process.once('SIGINT', () => {
    void services.stop().finally(() => process.exit(130));
});

async function measureAll(): Promise<void> {
    console.log(`Node ${process.version}, medians of ${rounds} rounds; ratio: median of the ratios of each round`);
    const measured: Measured[] = [];
    for (const section of wanted) {
        console.error(`measuring: ${section.name}`);
        const ofSection = await measure(section, { own, rounds, scale, ...(other && { other }) });
        console.log(`\n${tablesOf(ofSection, other !== undefined)}`);
        measured.push(...ofSection);
    }

    if (other !== undefined) {
        console.log(`\n${summaryOf(measured)}`);
    }
}

try {
    await (profile === undefined ? measureAll() : writeProfile(profile, { own, scale }));
} finally {
    await services.stop();
    await Promise.all([own.remove(), other?.remove()]);
}
