import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';

/*
 * Who may write to the folder may put another database in the place of ours: one that is not its owner's alone is refused as the command
 * line refuses it.
 */

const isRoot = process.getuid?.() === 0;
const STRANGER = 65_534;

/** A folder within one that anybody may write to. */
function planted(t: Test, mode: number, ...names: readonly string[]): string {
    const folder = join(t.testdir(), 'data');
    mkdirSync(folder);
    for (const name of names) {
        mkdirSync(join(folder, name));
    }
    chmodSync(folder, mode);
    return folder;
}

async function refuses(t: Test, folder: string, message: RegExp): Promise<void> {
    const opened = openEmbeddedDatabase({ folder }).then(async (database) => await database.end());
    await t.rejects(opened, { code: 'MISCONFIGURED', field: 'folder', message });
}

t.test('opens no folder of somebody else, whatever its mode', async (t) => {
    if (!isRoot) {
        await refuses(t, '/', /^\/ belongs to user 0 and not to \d+, .*\(mode 0755\): name another folder$/);
        return;
    }

    for (const [mode, text] of [
        [0o777, '0777'],
        [0o700, '0700'],
    ] as const) {
        const folder = planted(t, mode);
        chownSync(folder, STRANGER, STRANGER);
        await refuses(
            t,
            folder,
            new RegExp(`${folder} belongs to user ${STRANGER} and not to 0, .*\\(mode ${text}\\): name another folder$`),
        );
        t.strictSame(readdirSync(folder), []);
    }
});

t.test('follows no link', async (t) => {
    const folder = planted(t, 0o700);
    const link = join(t.testdirName, 'link');
    symlinkSync(folder, link);
    await refuses(t, link, /link is a link: name the folder that it leads to$/);
    await refuses(t, `${link}/`, /is a link/);
    t.strictSame(readdirSync(folder), []);
});

t.test('opens no folder that others can look into, and says how it is closed', async (t) => {
    for (const mode of [0o777, 0o755, 0o750]) {
        const folder = planted(t, mode, 'database.new');
        const user = process.getuid?.();
        await refuses(t, folder, new RegExp(`of user ${user} has mode 0${mode.toString(8)}, .* chmod 700 ${folder}$`));
        t.strictSame(readdirSync(folder), ['database.new'], 'nothing was begun');

        chmodSync(folder, 0o700);
        const database = await openEmbeddedDatabase({ folder });
        await database.end();
    }
});

t.test('takes the rights of others away from an empty folder', async (t) => {
    const folder = planted(t, 0o755);
    const database = await openEmbeddedDatabase({ folder });
    t.teardown(() => database.end());
    t.equal(statSync(folder).mode & 0o777, 0o700);
});
