import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from './support/packed.ts';

/* What the types of the built package let an application write, and what not: an expected error that does not come is one as well. */

/** Where `import 'scanwire/…'` finds the built package, as it does for whoever installed it. */
const FOLDER = 'build/package-types';

async function faultsOf(files: Readonly<Record<string, string>>): Promise<string> {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    for (const [name, source] of Object.entries(files)) {
        writeFileSync(join(FOLDER, name), source);
    }

    const options = [
        '--ignoreConfig',
        '--noEmit',
        '--strict',
        '--skipLibCheck',
        '--module',
        'nodenext',
        '--target',
        'es2023',
        '--types',
        'node',
    ];
    const paths = Object.keys(files).map((name) => join(FOLDER, name));
    const { stdout } = await run('node_modules/.bin/tsc', [...options, ...paths]).catch((error: { stdout: string }) => error);
    return stdout;
}

const BODIES = `
import type { Server } from '@hapi/hapi';
import 'scanwire/webhook-exporter';
import type { EventBodies, Webhooks } from 'scanwire/webhooks';

declare module 'scanwire/webhooks' {
    interface EventBodies {
        'scan.finished': { readonly hosts: number };
    }
}

declare const server: Server;
declare const webhooks: Webhooks;
declare const unknownKind: string;
const investigation: EventBodies['idr_investigation_created'] = {
    timestamp: new Date(), title: 'Weak cipher', link: 'https://example.com/1', investigationId: '', investigationRrn: '',
    actors: { users: [], assets: [] },
};

for (const { publish, publishAll } of [webhooks, server.plugins['webhook-exporter'], server.plugins['webhook-exporter'].of('b')]) {
    await publish('idr_investigation_created', investigation);
    await publish('idr_investigation_created', { ...investigation, timestamp: '2026-01-01T00:00:00Z', description: undefined });
    await publish('scan.finished', { hosts: 1 });
    await publish('of.the.application', { anything: 1 });
    await publish(unknownKind, { anything: 1 });
    // @ts-expect-error: fields are missing
    await publish('idr_investigation_created', { title: 'Weak cipher' });
    // @ts-expect-error: of another type
    await publish('idr_investigation_created', { ...investigation, title: 1 });
    // @ts-expect-error: misspelt
    await publish('idr_investigation_created', { ...investigation, descripton: '' });
    // @ts-expect-error: a user has a name
    await publish('idr_investigation_created', { ...investigation, actors: { users: [{ link: '', emails: '' }], assets: [] } });
    // @ts-expect-error: as the application has it
    await publish('scan.finished', { hosts: 'many' });

    const first = { kind: 'idr_investigation_created', body: investigation, orderKey: 'a' } as const;
    await publishAll([first, { kind: 'scan.finished', body: { hosts: 1 } }, { kind: 'of.the.application', body: 1 }]);
    await publishAll([1, 2].map((hosts) => ({ kind: unknownKind, body: { hosts } })));
    // @ts-expect-error: fields are missing in the second
    await publishAll([first, { kind: 'idr_investigation_created', body: { title: 'Weak cipher' } }]);
}
`;

t.test('knows the fields of the body of an event by its kind, of those that an application adds too', async (t) => {
    t.equal(await faultsOf({ 'bodies.ts': BODIES }), '');
});

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly exports: object };
// Laws throw what an assertion throws.
const entries = Object.keys(exports).filter((subpath) => !/json$|contract$/.test(subpath));

t.test('has the one union of the codes of errors in every entry', async (t) => {
    const { STATUS } = (await import('../plugins/errors.ts')) as { readonly STATUS: object };
    const codes = Object.keys(STATUS).map((code) => `'${code}'`);
    const files = entries.map((subpath) => [
        `${subpath.slice('./'.length)}.ts`,
        `import { ScanwireError, type ScanwireErrorCode } from 'scanwire/${subpath.slice('./'.length)}';
        const read: ScanwireErrorCode = new ScanwireError('CONFLICT', 'Taken').code;
        const all: Readonly<Record<ScanwireErrorCode, true>> = { ${codes.map((code) => `${code}: true`).join(', ')} };
        // @ts-expect-error: no code
        const none: ScanwireErrorCode = 'TAKEN';
        export { all, none, read };`,
    ]);
    t.ok(files.length > 20);
    t.equal(await faultsOf(Object.fromEntries(files)), '');
});
