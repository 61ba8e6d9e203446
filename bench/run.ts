/*
 * `npm run bench`: every figure that the documentation quotes, beside its peer, in turn or both at once. With the names of
 * sections, only those: `npm run bench -- records capture`.
 */
import Table from 'cli-table3';
import { testServers } from '../test/support/servers.ts';
import { profileDeliveries } from './profile-deliveries.ts';
import { sections } from './sections.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const names = process.argv.slice(2);
const wanted = sections.filter(({ name }) => names.length === 0 || names.includes(name));
const unknown = names.filter((name) => !sections.some((section) => section.name === name));
if (unknown.length > 0) {
    console.error(`No section ${unknown.join(', ')}. There are ${sections.map(({ name }) => name).join(', ')}.`);
    process.exit(2);
}

const services = await testServers({ durable: true });
Object.assign(process.env, services.env);

try {
    const table = new Table({ head: ['what', 'scanwire', 'peer', 'ratio'], style: { head: [], border: [] } });
    for (const { name, measure } of wanted) {
        say(name);
        table.push(...(await measure(ROUNDS)).map((row) => [...row]));
    }

    console.log(`\nNode ${process.version}, medians of ${ROUNDS} rounds after one that does not count; memory of records: one run\n`);
    console.log(table.toString());

    if (wanted.some(({ name }) => name === 'deliveries')) {
        say('profile of the deliveries');
        console.log(await profileDeliveries());
    }
} finally {
    await services.stop();
}

function say(what: string): void {
    process.stderr.write(`measuring: ${what}\n`);
}
