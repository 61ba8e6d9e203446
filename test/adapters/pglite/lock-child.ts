import { lockFolder } from '../../../adapters/pglite/folder-lock.ts';
import { ScanwireError } from '../../../lib/errors.ts';

try {
    await lockFolder(process.argv[2] ?? '');
    process.stdout.write('held\n');
    setInterval(() => {}, 60_000);
} catch (error) {
    process.stdout.write(`${error instanceof ScanwireError ? error.code : error}\n`);
}
