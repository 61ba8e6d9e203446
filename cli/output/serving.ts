import { resolve } from 'node:path';
import { quoted } from '../../lib/owned-folder.ts';
import { jsonText, printableLines } from '../../lib/printable.ts';
import { VERSION } from '../../lib/version.ts';
import type { SignInLink } from '../console-sign-in.ts';
import { type DataFolder, DEFAULT_DATA } from '../data-folder.ts';
import type { DemoShown } from '../demo.ts';
import type { TlsPair } from '../tls-certificate.ts';
import { aligned } from './table.ts';
import { isDelivered, testText } from './test-result.ts';

/** A server that can be used. */
export interface Serving {
    readonly json: boolean;
    /** Where the REST API listens. */
    readonly uri: string;
    readonly folder: DataFolder;
    readonly tls: TlsPair;
    /** What the operator has to know of the licence, null for nothing. */
    readonly license: string | null;
    /** Where the scan database is that is read; null where the inventory is in the data folder's own. */
    readonly scan: string | null;
    /** Signs a browser in; null where nobody is to see one. */
    readonly link: SignInLink | null;
    readonly environment: NodeJS.ProcessEnv;
    readonly demo: DemoShown | null;
}

/** What a server says once it can be used. */
export async function serving({ json, uri, folder, tls, license, scan, link, environment, demo }: Serving): Promise<string> {
    const database = environment.DATABASE_URL === undefined ? 'embedded' : 'PostgreSQL';
    const queue = environment.REDIS_URL === undefined ? database : 'Redis';
    if (json) {
        const document = {
            url: uri,
            data: folder.path,
            database,
            queue,
            certificate: tls.selfSigned,
            license,
            pid: process.pid,
            demo,
            ...(scan !== null && { scan }),
        };
        return `${jsonText(document)}\n`;
    }

    const server = await aligned([
        ['REST API', `${uri}/rest_api/v2`],
        ['Data', `${folder.path}, database ${database}, queue ${queue}`],
        ...(scan === null ? [] : [['Inventory', `the scan database at ${scan}, only read`]]),
        ['Certificate', tls.selfSigned === null ? 'yours' : `${tls.selfSigned} (self-signed)`],
        ...(license === null ? [] : [['Licence', license]]),
        ...(link === null ? [] : [['Administration', `${link.url} (signs one browser in, within 5 minutes)`]]),
    ]);
    const rest = demo === null ? `Make an API key with: scanwire keys create NAME${dataOption(folder)}` : await demoText(demo, uri, tls);
    return printableLines(`\nscanwire ${VERSION}\n\n${indented(server)}\n\n${rest}\n\nCtrl-C stops the server.\n`);
}

async function demoText(
    { key, workspaceId, imported, receiver, exporter, test, investigation }: DemoShown,
    uri: string,
    tls: TlsPair,
): Promise<string> {
    const steps = await aligned([
        ['Scan', imported === null ? 'imported before' : `imported: ${imported.hosts.new} hosts with ${imported.services.new} services`],
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

function indented(text: string): string {
    return text.replace(/^/gm, '  ');
}
