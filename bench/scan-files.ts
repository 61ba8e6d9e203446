import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { nmapElement, type ScannedHost, scannedNetwork } from './network.ts';

/** The same hosts as files to import and as rows to copy. */
export interface ScanFiles {
    /** JSON lines. */
    readonly jsonl: string;
    /** Of nmap. */
    readonly xml: string;
    /** Rows for `COPY`, in its text form. */
    readonly rows: Readonly<Record<CopiedTable, string>>;
    close(): Promise<void>;
}

export type CopiedTable = 'hosts' | 'services';

/** The columns that an import of these files gives. */
export const COPIED: Readonly<Record<CopiedTable, readonly string[]>> = {
    hosts: [
        'id',
        'workspace_id',
        'generation',
        'created_at',
        'updated_at',
        ...['address', 'name', 'mac', 'os_name', 'os_flavor'],
        'service_count',
    ],
    services: ['generation', 'host_id', 'created_at', 'updated_at', 'port', 'proto', 'state', 'name', 'info'],
};

/** A header as nmap writes it. */
const NMAP = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE nmaprun>
<nmaprun scanner="nmap" args="nmap -sV -O -oX network.xml 10.0.0.0/8" start="1795236035" version="7.93" xmloutputversion="1.05">
<scaninfo type="syn" protocol="tcp" numservices="1001" services="1-1000,5432"/>
`;
const NMAP_END = '<runstats><finished time="1795239999" elapsed="3964" exit="success"/></runstats>\n</nmaprun>\n';

/** So many hosts, each with four services. */
export async function scanFiles(hosts: number): Promise<ScanFiles> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const at = new Date().toISOString();
    const write = async (name: string, textOf: (host: ScannedHost, id: number) => string, [head = '', end = ''] = [] as string[]) => {
        const file = join(folder, name);
        await pipeline(pieces(hosts, textOf, head, end), createWriteStream(file));
        return file;
    };
    const line = (values: readonly (string | number)[]): string => `${values.join('\t')}\n`;
    return {
        jsonl: await write('network.jsonl', (host) => `${JSON.stringify(host)}\n`),
        xml: await write('network.xml', nmapElement, [NMAP, NMAP_END]),
        rows: {
            hosts: await write('hosts', ({ services, address, name, mac, os_name, os_flavor }, id) =>
                line([id, 1, 1, at, at, address, name, mac, os_name, os_flavor, services.length]),
            ),
            services: await write('services', ({ services }, id) =>
                services
                    .map(({ port, proto, state, name, info }) => line([1, id, at, at, port, proto, state, name, info ?? '\\N']))
                    .join(''),
            ),
        },
        close: () => rm(folder, { recursive: true }),
    };
}

const PIECE = 65_536;

function* pieces(hosts: number, textOf: (host: ScannedHost, id: number) => string, head: string, end: string): Generator<string> {
    let [piece, id] = [head, 0];
    for (const host of scannedNetwork(hosts)) {
        id += 1;
        piece += textOf(host, id);
        if (piece.length > PIECE) {
            yield piece;
            piece = '';
        }
    }
    yield piece + end;
}
