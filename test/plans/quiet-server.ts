import { rmSync } from 'node:fs';
import type { Test } from 'tap';
import { findPostgres } from '../support/find-program.ts';
import { postgresServer } from '../support/postgres-server.ts';
import { required } from '../support/required.ts';
import { folderOfServers } from '../support/temporary-folders.ts';

/** What is lost with it is lost with its folder, and nothing happens by itself. */
const SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'autovacuum=off'];

/**
 * The URL of a PostgreSQL of the test's own, for what counts the pages of rows that are dead. Where anybody has a transaction open, in whatever database
 * of a server, PostgreSQL takes what has died since for needed, does not clear it out of pages and reads it again and again: beside other tests a
 * statement read 59 pages in place of 49. The server of `DATABASE_URL` where this machine has no program for another one.
 */
export async function quietServer(t: Test): Promise<string> {
    const programs = findPostgres();
    if (programs === null) {
        return required('DATABASE_URL');
    }

    const folder = folderOfServers('scanwire-plans');
    const server = await postgresServer(folder, { programs, settings: SETTINGS, init: ['--wal-segsize', '1'] });
    t.teardown(async () => {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
    });
    return server.url;
}
