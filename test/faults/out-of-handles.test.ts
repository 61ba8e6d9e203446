import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { answers, receiver } from '../support/bad-receiver.ts';
import { nameServer } from '../support/name-server.ts';

t.test('a process without handles blames itself, and no receiver', async (t) => {
    const made = await receiver(answers('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'));
    t.teardown(() => made.close());
    const names = await nameServer((_, type) => (type === 'A' ? ['127.0.0.1'] : []));
    t.teardown(() => names.close());

    const child = fileURLToPath(new URL('./out-of-handles-child.js', import.meta.url));
    const command = 'ulimit -n 128; exec "$0" "$@"';
    const args = ['-c', command, process.execPath, child, names.address, String(made.port)];
    const { stdout } = await promisify(execFile)('sh', args);
    t.same(JSON.parse(stdout), {
        before: ['delivered', 'delivered'],
        meanwhile: ['interrupted', 'interrupted'],
        after: ['delivered', 'delivered'],
    });
});
