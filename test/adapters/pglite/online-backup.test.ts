import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';
import { unpackTar } from '../../../lib/tar.ts';

t.test('copies a database that is written to all the time, as it is when the copy ends', async (t) => {
    const database = await filled(t);
    let written = 0;
    let writing = true;
    const writer = (async () => {
        for (; writing; written += 1) {
            await database.query(`insert into copied values ($1, 'while it is copied')`, [100_000 + written]);
            await database.query(`update copied set text = text || 'x' where n % 997 = $1`, [written % 997]);
        }
    })();
    const copy: Uint8Array[] = [];
    let before = 0;
    for await (const chunk of database.dump()) {
        before = copy.length === 0 ? written : before;
        copy.push(chunk);
        if (copy.length % 20 === 0) {
            // Each waits for the database, as a reader that is slow would.
            await database.query('select');
        }
    }
    writing = false;
    await writer;
    t.ok(written - before > 10, 'others are answered while it is copied');

    const copied = await openCopy(t, copy);
    const { rows } = await copied.query<{ count: number; last: number }>('select count(*)::integer, max(n) as last from copied');
    const { count, last } = rows[0] as { count: number; last: number };
    t.equal(count, 20_000 + last - 100_000 + 1, 'with nothing missing between the first and the last');
    t.ok(last - 100_000 > before, 'of what was written meanwhile as well');
    await copied.query('reindex table copied');
    t.same((await copied.query('select text from copied where n = 3')).rows.length, 1);
    t.same((await copied.query('select pg_is_in_recovery() as not_yet')).rows, [{ not_yet: false }]);
});

t.test('copies what is made, cut off and removed while it is copied', async (t) => {
    const database = await filled(t);
    const steps = ['create table made as select * from copied', 'truncate copied', 'drop table gone', 'vacuum full kept'];
    await database.query('create table gone as select * from copied');
    await database.query('create table kept as select * from copied');
    await database.query('delete from kept where n > 100');
    const copy: Uint8Array[] = [];
    for await (const chunk of database.dump()) {
        copy.push(chunk);
        const step = copy.length % 40 === 0 ? steps.shift() : undefined;
        if (step !== undefined) {
            await database.query(step);
        }
    }
    t.same(steps, []);

    const copied = await openCopy(t, copy);
    const { rows } =
        await copied.query(`select (select count(*)::integer from made) as made, (select count(*)::integer from copied) as copied,
        (select count(*)::integer from kept) as kept, to_regclass('gone') as gone`);
    t.same(rows, [{ made: 20_000, copied: 0, kept: 101, gone: null }]);
});

t.test('makes one copy after the other, and gives up one that nobody reads any further', async (t) => {
    const database = await filled(t);
    const first = database.dump()[Symbol.asyncIterator]();
    await first.next();
    await t.rejects(buffer(database.dump()), {
        code: 'CONFLICT',
        message: 'The embedded database is being copied already: one copy after the other',
    });
    await first.return?.();
    t.ok((await buffer(database.dump({ prefix: 'database' }))).includes('database/backup_label'));
});

t.test('copies a copy, and nothing that PostgreSQL has no use for', async (t) => {
    const first: Uint8Array[] = [];
    for await (const chunk of (await filled(t)).dump()) {
        first.push(chunk);
    }
    const copied = await openCopy(t, first);
    const files = join(t.testdirName, 'copy', 'database');
    t.ok(existsSync(join(files, 'backup_label.old')), 'PostgreSQL keeps the label of what it was made of');
    for (const name of ['.DS_Store', 'notes.txt', 'base/pgsql_tmp', 'base/5/t3_16385']) {
        writeFileSync(join(files, name), 'a secret of before');
    }
    const second = await buffer(copied.dump());
    t.notOk(/backup_label\.old|DS_Store|a secret of before/.test(second.toString('latin1')));
});

t.test('copies nothing that restoring refuses', async (t) => {
    const database = await filled(t);
    const files = join(t.testdirName, 'data/database');
    mkdirSync(join(files, 'base/5 (copy)'));
    for (const name of [
        'base/5 (copy)/1',
        'base/5/1.sync-conflict-2026',
        'global/1259_old',
        'base/5/1 (copy)',
        'base/5/1 é',
        'base/5/1 表',
        `base/5/1${'0'.repeat(90)}`,
    ]) {
        writeFileSync(join(files, name), 'a file of somebody else');
    }
    const copy: Uint8Array[] = [];
    for await (const chunk of database.dump({ prefix: 'restored' })) {
        if (copy.length === 0) {
            const { rows } = await database.query<{ name: string }>('select pg_walfile_name(pg_current_wal_insert_lsn()) as name');
            writeFileSync(join(files, 'pg_wal', `${rows[0]?.name} (copy)`), 'a file of somebody else');
            await database.query('insert into copied select 1000000');
            await database.query('select pg_switch_wal()');
        }
        copy.push(chunk);
    }
    t.notOk(Buffer.concat(copy).includes('a file of somebody else'));
    const into = join(t.testdirName, 'into');
    await unpackTar(copy, into);
    t.ok(existsSync(join(into, 'restored/PG_VERSION')));
});

t.test('refuses a prefix with which names are none', async (t) => {
    const database = await filled(t);
    for (const prefix of ['', '../data', 'my data', 'x'.repeat(41)]) {
        await t.rejects(buffer(database.dump({ prefix })), { code: 'INVALID_INPUT', field: 'prefix' }, prefix);
    }
});

t.test('gives up a copy of which nothing is read for ten minutes', async (t) => {
    const tasks = new Set<() => void>();
    const folder = join(t.testdir(), 'data');
    const ticker = (task: () => void) => {
        tasks.add(task);
        return () => tasks.delete(task);
    };
    const database = await openEmbeddedDatabase({ folder, ticker });
    t.teardown(() => database.end());
    const others = new Set(tasks);
    const copy = database.dump()[Symbol.asyncIterator]();
    await copy.next();
    const pass = (minutes: number): void => {
        const looks = [...tasks].filter((task) => !others.has(task));
        t.equal(looks.length, 1);
        Array.from({ length: minutes }, () => looks[0]?.());
    };

    pass(9);
    t.match(await copy.next(), { done: false });
    pass(9);
    t.match(await copy.next(), { done: false });
    pass(10);
    await until(async () => {
        const next = database.dump()[Symbol.asyncIterator]();
        const isBegun = await next.next().then(
            () => true,
            () => false,
        );
        await next.return?.();
        return isBegun;
    });
    await t.rejects(copy.next(), {
        code: 'UNAVAILABLE',
        message: 'The copy of the embedded database was given up: nothing of it was taken for 10 minutes',
    });
    t.strictSame(tasks, others, 'nobody looks any more');
});

for (const [which, segments] of [
    ['while it is read', 1],
    ['before it is read', 2],
] as const) {
    t.test(`is no copy when log was taken away ${which}`, async (t) => {
        const database = await filled(t);
        let copied = '';
        const goOn = async (): Promise<void> => {
            await database.query(`update copied set text = text || 'x'`);
            await database.query('select pg_switch_wal()');
        };
        const copy = async (): Promise<void> => {
            let isTaken = false;
            for await (const chunk of database.dump()) {
                const name = Buffer.from(chunk.subarray(0, 100)).toString('latin1').replace(/\0.*$/s, '');
                if (copied === '' && segments === 2) {
                    await goOn();
                }
                copied += `${name}\n`;
                if (!isTaken && /^pg_wal\/0/.test(name)) {
                    isTaken = true;
                    for (let round = 0; round < 4; round += 1) {
                        await goOn();
                    }
                    await database.query('checkpoint');
                }
            }
        };
        await t.rejects(copy(), { code: 'UNAVAILABLE', message: /^A checkpoint has taken away log/ });
        t.equal(copied.match(/^pg_wal\/0/gm)?.length, 1);
        t.notMatch(copied, 'backup_label', 'it has no end');
    });
}

t.test('is no copy when log that it needs was taken away', async (t) => {
    const database = await filled(t);
    const copy = async (): Promise<void> => {
        let chunks = 0;
        for await (const _ of database.dump()) {
            chunks += 1;
            if (chunks === 10) {
                for (let round = 0; round < 4; round += 1) {
                    await database.query(`update copied set text = text || 'x'`);
                    await database.query('select pg_switch_wal()');
                }
                await database.query('checkpoint');
            }
        }
    };
    await t.rejects(copy(), { code: 'UNAVAILABLE', message: /^A checkpoint has taken away log/ });
    t.ok((await buffer(database.dump())).length > 0, 'the next one is');
});

t.test('ends a copy with the database', async (t) => {
    const database = await filled(t);
    const copy = database.dump()[Symbol.asyncIterator]();
    await copy.next();
    await database.end();
    const rest = async (): Promise<void> => {
        while ((await copy.next()).done !== true) {
            // Until it is told.
        }
    };
    await t.rejects(rest(), { code: 'UNAVAILABLE', message: 'The embedded database is closed' });
});

t.test('leaves out what is of the process, but for the folders of it', async (t) => {
    const folder = t.testdir();
    const database = await openEmbeddedDatabase({ folder: join(folder, 'data') });
    t.teardown(() => database.end());
    writeFileSync(join(folder, 'data/database/postmaster.pid'), '-42');
    const names: string[] = [];
    const into = join(folder, 'copy');
    await unpackTar([await buffer(database.dump())], into);
    const walk = (at: string): void => {
        for (const entry of readdirSync(at, { withFileTypes: true })) {
            names.push(entry.name);
            if (entry.isDirectory()) {
                walk(join(at, entry.name));
            }
        }
    };
    walk(into);
    t.notOk(names.includes('postmaster.pid'));
    t.ok(existsSync(join(into, 'pg_notify')), 'folders that have to be there are');
    t.ok(names.includes('PG_VERSION'));
});

async function filled(t: Test) {
    const database = await openEmbeddedDatabase({ folder: join(t.testdir({ copy: {} }), 'data') });
    t.teardown(() => database.end());
    await database.query('create table copied (n integer primary key, text text)');
    await database.query(`insert into copied select n, repeat('x', 100) from generate_series(0, 19999) n`);
    return database;
}

async function openCopy(t: Test, copy: readonly Uint8Array[]) {
    const folder = join(t.testdirName, 'copy');
    await unpackTar(copy, join(folder, 'database'));
    chmodSync(folder, 0o700);
    const database = await openEmbeddedDatabase({ folder });
    t.teardown(() => database.end());
    return database;
}
