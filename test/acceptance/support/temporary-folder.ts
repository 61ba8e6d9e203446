import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** A folder that goes with the test. Its path is short, as that of a socket in it must be. */
export function temporaryFolder(t: Test): string {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
}
