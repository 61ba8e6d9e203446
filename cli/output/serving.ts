import { resolve } from 'node:path';
import { VERSION } from '../../lib/version.ts';
import { type DataFolder, DEFAULT_DATA } from '../data-folder.ts';
import type { DemoShown } from '../demo.ts';
import type { TlsPair } from '../tls-certificate.ts';
import { facts } from './table.ts';
import { isDelivered, testText } from './test-result.ts';

export interface Serving {
    readonly json: boolean;
    /** Where the REST API listens. */
    readonly uri: string;
    readonly folder: DataFolder;
    readonly tls: TlsPair;
    readonly environment: NodeJS.ProcessEnv;
    readonly demo: DemoShown | null;
}

/** What a server says once it can be used. */
export async function serving({ json, uri, folder, tls, environment, demo }: Serving): Promise<string> {
    const database = environment.DATABASE_URL === undefined ? 'embedded' : 'PostgreSQL';
    const queue = environment.REDIS_URL === undefined ? database : 'Redis';
    if (json) {
        const document = { url: uri, data: folder.path, database, queue, certificate: tls.selfSigned, pid: process.pid, demo };
        return `${JSON.stringify(document)}\n`;
    }

    const server = await facts([
        ['REST API', `${uri}/rest_api/v2`],
        ['Data', `${folder.path}, database ${database}, queue ${queue}`],
        ['Certificate', tls.selfSigned === null ? 'yours' : `${tls.selfSigned} (self-signed)`],
    ]);
    const rest = demo === null ? `Make an API key with: scanwire keys create NAME${dataOption(folder)}` : await demoText(demo, uri, tls);
    return `\nscanwire ${VERSION}\n\n${indented(server)}\n\n${rest}\n\nCtrl-C stops the server.\n`;
}

async function demoText(
    { key, workspaceId, imported, receiver, exporter, test, investigation }: DemoShown,
    uri: string,
    tls: TlsPair,
): Promise<string> {
    const steps = await facts([
        [
            'Scan',
            imported === null ? 'imported before' : `imported: ${imported.hosts.created} hosts with ${imported.services.created} services`,
        ],
        ['API key', `${key.key} (${key.name})`],
        ['Receiver', receiver],
        ['Exporter', `${exporter.name}, ${exporter.state}: ${testText(test)}`],
        ['Investigation', investigationText(investigation)],
    ]);
    const trust = tls.selfSigned === null ? '' : `--cacert ${quoted(tls.selfSigned)} `;
    const curl = (path: string): string => `curl ${trust}-H ${quoted(`token: ${key.key}`)} ${quoted(`${uri}/rest_api/v2/${path}`)}`;
    const tries = [curl('base'), curl('workspaces'), curl(`workspaces/${workspaceId}/hosts`)];
    const verdict = isDelivered(test) && investigation.verification?.ok === true ? 'All of it works. Try:' : 'Not all of it worked. Try:';
    return `${indented(steps)}\n\n${verdict}\n\n${indented(tries.join('\n'))}`;
}

function investigationText({ verification, attempt }: DemoShown['investigation']): string {
    if (verification === null) {
        return `did not arrive in time (${attempt?.detail ?? 'not sent yet'})`;
    }

    return verification.ok ? `arrived, signature verified (${verification.forms.join(', ')})` : `arrived, but ${verification.reason}`;
}

/** What a command needs to find the server. */
function dataOption({ path }: DataFolder): string {
    return path === resolve(DEFAULT_DATA) ? '' : ` --data ${quoted(path)}`;
}

/** For a shell, as one word. */
function quoted(text: string): string {
    return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function indented(text: string): string {
    return text.replace(/^/gm, '  ');
}
