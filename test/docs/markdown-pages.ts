import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The pages that people read, those below the folders too. */
export function markdownPages(...folders: readonly string[]): readonly string[] {
    return ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'UPGRADING.md', ...folders.flatMap(markdownIn)];
}

function markdownIn(folder: string): readonly string[] {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => join(folder, name));
}
