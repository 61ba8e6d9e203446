import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import t from 'tap';
import { findTemplate, readTemplate } from '../../adapters/pglite/template.ts';
import { TAR_END, tarEntry } from '../../lib/tar.ts';
import { overwritten } from '../support/damaged-gzip.ts';
import { dataOf, fixture, get, json, said, serve, usedDataOf } from '../support/served.ts';

// Starts of servers take their time on a busy machine.
t.setTimeout(240_000);

t.test('copies what is being served, and makes a folder of it that serves the same', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const made = JSON.parse((await said(['keys', 'create', 'first', '--json', '--data', data])).stdout) as { id: string; key: string };
    const file = join(dirname(data), 'monday.scanwire');

    const { stdout, stderr } = await said(['backup', file, '--json', '--data', data]);
    t.match(JSON.parse(stdout), { file, bytes: statSync(file).size, keyRing: true }, stderr);
    t.equal(statSync(file).mode & 0o777, 0o600);
    t.strictSame(
        readdirSync(dirname(file)).filter((name) => name.startsWith('.')),
        [],
        'nothing unfinished is left',
    );
    const whole = readFileSync(file);
    const again = await said(['backup', file, '--data', data]);
    t.equal(again.code, 1);
    t.match(again.stderr, /exists already, and a backup replaces nothing/);
    t.ok(readFileSync(file).equals(whole));
    t.equal((await get(served, '/rest_api/v2/workspaces', made.key)).status, 200, 'the server has gone on');

    const other = join(dirname(data), 'other');
    t.match((await said(['restore', file, '--data', data])).stderr, /holds something already/);
    mkdirSync(other, { mode: 0o700 });
    t.equal((await said(['restore', file, '--data', other])).code, 0);
    t.equal(statSync(other).mode & 0o777, 0o700);
    t.equal(statSync(join(other, 'key-ring.json')).mode & 0o777, 0o600);
    server.kill('SIGKILL');

    const { served: restored } = await serve(t, other);
    t.equal((await get(restored, '/rest_api/v2/workspaces', made.key)).status, 200);
    const shown = await said(['keys', 'list', '--json', '--data', other]);
    t.match(shown.stdout, /first/);
    t.match(
        await json(other, 'keys', 'reveal', made.id),
        { key: made.key },
        'what its ring has sealed is opened by the ring that came along',
    );
});

t.test('copies nothing of the body of an event that was erased', async (t) => {
    const data = await usedDataOf(t);
    const { server } = await serve(t, data);
    const folder = dirname(data);
    const sample = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')) as object;
    const publish = async (title: string) => {
        writeFileSync(join(folder, 'event.json'), JSON.stringify({ ...sample, title }));
        return await json<{ eventId: string }>(data, 'events', 'publish', 'idr_investigation_created', join(folder, 'event.json'));
    };
    const copyOf = async (name: string) => {
        await json(data, 'backup', join(folder, name));
        return gunzipSync(readFileSync(join(folder, name)));
    };
    const [short, long, other] = ['short', 'long', 'other'].map((name) => `${name}-${randomBytes(8).toString('hex')}`) as [
        string,
        string,
        string,
    ];
    // In base64, since PostgreSQL would compress hexadecimal digits, and cut through the text that is looked for.
    const events = [await publish(short), await publish(`${long} ${randomBytes(50_000).toString('base64')}`)];
    await publish(other);
    const before = await copyOf('before');
    t.ok([short, long, other].every((text) => before.includes(text)));

    for (const { eventId } of events) {
        t.match(await json(data, 'events', 'erase', eventId), { id: eventId, erasedAt: String, ended: 0 });
        t.match(await json(data, 'events', 'show', eventId), { id: eventId, kind: 'idr_investigation_created', erasedAt: String });
    }
    const after = await copyOf('after');
    t.same(
        [short, long, other].map((text) => after.includes(text)),
        [false, false, true],
    );
    t.equal((await said(['restore', join(folder, 'after'), '--data', join(folder, 'other')])).code, 0);
    t.match(await json(join(folder, 'other'), 'events', 'show', events[0]?.eventId ?? ''), { erasedAt: String });
    server.kill('SIGKILL');
});

t.test('makes a folder of a backup that an older version made, with the database as a tar file of its own', async (t) => {
    const data = dataOf(t);
    const made = await PGlite.create({ loadDataDir: new Blob([await readTemplate(findTemplate() ?? '')]) });
    const tar = await made.dumpDataDir('none').finally(() => made.close());
    const file = join(dirname(data), 'older');
    const ring = readFileSync(join(await usedDataOf(t), 'key-ring.json'));
    const entries = [...tarEntry('database.tar', Buffer.from(await tar.arrayBuffer())), ...tarEntry('key-ring.json', ring)];
    writeFileSync(file, gzipSync(Buffer.concat([...entries, TAR_END])));
    t.equal((await said(['restore', file, '--data', data])).code, 0);
    t.strictSame(readdirSync(data), ['database', 'key-ring.json']);
    t.match(await json(data, 'keys', 'create', 'first'), { name: 'first' });

    let folder = data;
    for (const name of ['once', 'again']) {
        const copy = join(dirname(data), `${name}.scanwire`);
        await json(folder, 'backup', copy);
        folder = join(dirname(data), name);
        t.equal((await said(['restore', copy, '--data', folder])).code, 0, name);
        t.match((await said(['keys', 'list', '--data', folder])).stdout, /first/, 'of a copy as well');
    }
});

t.test('takes nothing for a backup that is none, and leaves no half of one', async (t) => {
    const data = dataOf(t);
    const folder = dirname(data);
    const file = join(folder, 'backup');
    const refused = async (message: RegExp) => {
        const { code, stderr } = await said(['restore', file, '--data', data]);
        t.equal(code, 1);
        t.match(stderr, message);
        t.strictSame(
            readdirSync(folder).filter((name) => name.startsWith('data')),
            [],
        );
    };

    await refused(/Cannot read .*backup: there is no such file/);
    writeFileSync(file, 'something else');
    await refused(/no whole backup/);
    writeFileSync(file, gzipSync(Buffer.alloc(1024)));
    await refused(/holds no database/);
    const archive = (...entries: readonly (readonly Uint8Array[])[]) => gzipSync(Buffer.concat([...entries.flat(), TAR_END]));
    const empty = Buffer.alloc(0);
    writeFileSync(file, archive(tarEntry('../outside', empty)));
    await refused(/no whole backup: The archive has "\.\.\/outside", which does not belong into it/);
    writeFileSync(file, gzipSync('something else '.repeat(100)));
    await refused(/no whole backup: The archive is no tar file/);
    writeFileSync(file, archive(tarEntry('database.tar', Buffer.concat(tarEntry('PG_VERSION', Buffer.alloc(2000)).slice(0, 1)))));
    await refused(/no whole backup: The archive was cut off/);
    const whole = archive(tarEntry('database.tar', TAR_END));
    writeFileSync(file, whole);
    await refused(/holds no database/);
    writeFileSync(file, overwritten(whole, whole.length - 8, 1));
    await refused(/no whole backup: The gzip file is damaged or was cut off/);

    const { code } = await said(['keys', 'create', 'first', '--data', data]);
    t.equal(code, 0);
    const here = join(folder, 'backed-up');
    t.equal((await said(['backup', here, '--data', data])).code, 0, 'without a server as well');
    truncateSync(here, statSync(here).size - 1000);
    const cut = await said(['restore', here, '--data', join(folder, 'cut')]);
    t.match([cut.code, cut.stderr], [1, /no whole backup/]);
    t.notOk(readdirSync(folder).some((name) => name.startsWith('cut')));
});

t.test('stops at a backup that expands beyond all measure', async (t) => {
    const data = dataOf(t);
    const file = join(dirname(data), 'bomb');
    const zeros = gzipSync(Buffer.alloc(64 * 1_048_576), { level: 9 });
    const [header] = tarEntry('database.tar', { length: 2 ** 30 } as Uint8Array);
    for (const start of [header as Uint8Array, TAR_END]) {
        writeFileSync(file, Buffer.concat([gzipSync(start), zeros, zeros]));
        const { code, stderr } = await said(['restore', file, '--data', data]);
        t.match([code, stderr], [1, /no whole backup: The gzip file expands more than 250 times: not read any further/]);
        t.strictSame(readdirSync(dirname(data)), ['bomb']);
    }
});
