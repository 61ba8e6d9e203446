/*
 * `npm run bench`: what scanwire costs beside its peers, in turn or both at once. With the names of sections, only those:
 * `npm run bench -- records capture`. Those that take minutes for each round are measured only by their names: `kept-million`, `million`, `import`,
 * `import-embedded`, `import-million`, `lists` and `screens`.
 *
 * `npm run bench -- --against ../other --rounds 9` measures the package of this checkout beside that of another, compiled one, by the
 * same bench, and says which figures are worse. `--scale 0.1` counts a tenth, to see that all works.
 *
 * `npm run bench -- --profile docs/pace.md` measures nothing else, and writes where the time of a delivery goes; `npm run format` then sets its tables.
 */
import { parseArgs } from 'node:util';
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
import { requests, show } from './host-requests.ts';
import { idle } from './idle.ts';
import { kept, keptMillion } from './kept.ts';
import { lists } from './lists.ts';
import { neighbours } from './neighbours.ts';
import { observed } from './observed.ts';
import { order } from './order.ts';
import { pace } from './pace.ts';
import { PROFILE_SETTINGS, writeProfile } from './profile.ts';
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
    formats,
    subscriptions,
    fanOut,
    order,
    observed,
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

const { values, positionals: names } = parseArgs({
    options: {
        against: { type: 'string' },
        profile: { type: 'string' },
        rounds: { type: 'string', default: '5' },
        scale: { type: 'string', default: '1' },
    },
    allowPositionals: true,
});
const wanted = SECTIONS.filter(({ name, onRequest = false }) => (names.length === 0 ? !onRequest : names.includes(name)));
const unknown = names.filter((name) => !SECTIONS.some((section) => section.name === name));
if (unknown.length > 0) {
    console.error(`Unknown section ${unknown.join(', ')}. There are ${SECTIONS.map(({ name }) => name).join(', ')}.`);
    process.exit(2);
}

const rounds = Number(values.rounds);
const scale = Number(values.scale);
if (!(Number.isInteger(rounds) && rounds > 0 && scale > 0)) {
    console.error('--rounds must be a whole number, --scale a number, both more than 0.');
    process.exit(2);
}

const [own, other] = values.against === undefined ? [await ownCheckout()] : await ownAndOtherCheckout(values.against);
const services = await testServers({
    durable: true,
    settings: ['shared_preload_libraries=pg_stat_statements', ...(values.profile === undefined ? [] : PROFILE_SETTINGS)],
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
    await (values.profile === undefined ? measureAll() : writeProfile(values.profile, { own, scale }));
} finally {
    await services.stop();
    await Promise.all([own.remove(), other?.remove()]);
}
