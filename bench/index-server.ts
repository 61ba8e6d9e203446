import { type TestDatabase, testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { type Background, background, type ProcessOptions } from './processes.ts';

/** A server that has hosts. */
export interface IndexServer {
    readonly process: Background;
    /** Of the index. */
    readonly url: string;
    readonly token: string;
}

/** @param contender One that prints both. */
export async function indexServer(checkout: Checkout, contender: string, options: ProcessOptions): Promise<IndexServer> {
    const process = await background(checkout, contender, options);
    const [url = '', token = ''] = process.firstLine.split(' ');
    return { process, url, token };
}

/** A database with hosts in a workspace. */
export interface HostDatabase extends TestDatabase {
    /** Id of the workspace. */
    readonly workspace: string;
}

/** Filled by the checkout itself, as its tables may be others. */
export async function hostDatabase(checkout: Checkout, hosts: number): Promise<HostDatabase> {
    const database = await testDatabase();
    return { ...database, workspace: await filled(checkout, 'postgres', database.url, hosts) };
}

/** Puts so many hosts where they are kept, and resolves with the id of their workspace. */
export async function filled(checkout: Checkout, kind: 'postgres' | 'embedded', place: string, hosts: number): Promise<string> {
    const { process, url } = await indexServer(checkout, 'scanwire-hosts', { args: [kind, place, String(hosts)] });
    await process.stop();
    return new URL(url).pathname.split('/').at(-2) ?? '';
}
