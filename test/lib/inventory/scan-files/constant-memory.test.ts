import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import type { Read } from './reading-worker.ts';

const HOSTS = 3_000;
/** Far less than that many hosts take. */
const MEMORY = { maxOldGenerationSizeMb: 20, maxYoungGenerationSizeMb: 4 };
const TEXT = 'seen by the weekly scan '.repeat(400);
/** As long as the other texts, all of them apart. */
const PORTS = Array.from({ length: 2000 }, (_, index) => 2 * index + 1).join();

const PORT = `<port protocol="tcp" portid="443"><state state="open"/><script id="x" output="${TEXT}"/></port>`;
const NOTES = `<notes><note><ntype>x</ntype><data>${TEXT}</data></note></notes>`;
const ITEM = `<ReportItem port="443" protocol="tcp" severity="1" pluginID="1" pluginName="x"><description>${TEXT}</description></ReportItem>`;
const FINDING = `"timestamp": "1763900000", "ports": [ {"port": 443, "proto": "tcp", "service": {"name": "http", "banner": "${TEXT}"} } ] }`;

const FILES: Readonly<Record<string, Omit<Read, 'count'>>> = {
    'JSON lines': { head: '', host: `{"address":"#","comments":"${TEXT}"}\n`, end: '' },
    'a list of masscan': { head: '[\n', host: `{   "ip": "#",   ${FINDING}\n,\n`, end: '{finished: 1}\n' },
    'XML of nmap': {
        head: '<nmaprun scanner="nmap">\n',
        host: `<host><status state="up"/><address addr="#" addrtype="ipv4"/><ports>${PORT}</ports></host>\n`,
        end: '</nmaprun>\n',
    },
    'XML of Metasploit': {
        head: '<MetasploitV5><hosts>',
        host: `<host><address>#</address>${NOTES}</host>\n`,
        end: '</hosts></MetasploitV5>',
    },
    'XML of nmap that lists the ports of ever other protocols': {
        head: '<nmaprun scanner="nmap">\n',
        host: `<scaninfo type="syn" protocol="#" services="${PORTS}"/><host><status state="up"/><address addr="#" addrtype="ipv4"/></host>\n`,
        end: '</nmaprun>\n',
    },
    'a report of Nessus': {
        head: '<NessusClientData_v2><Report>',
        host: `<ReportHost name="#">${ITEM}</ReportHost>\n`,
        end: '</Report></NessusClientData_v2>',
    },
};

async function read(workerData: Read): Promise<number> {
    const worker = new Worker(new URL('./reading-worker.js', import.meta.url), { workerData, resourceLimits: MEMORY });
    const [hosts] = (await once(worker, 'message')) as [number];
    await worker.terminate();
    return hosts;
}

for (const [name, file] of Object.entries(FILES)) {
    t.test(`reads ${name} in less memory than its hosts take`, async (t) => {
        t.equal(await read({ ...file, count: HOSTS }), HOSTS);
    });
}

t.test('takes more for whoever keeps them', async (t) => {
    const file = FILES['JSON lines'] as Read;
    await t.rejects(read({ ...file, count: HOSTS, keeps: true }), { code: 'ERR_WORKER_OUT_OF_MEMORY' });
});
