import { once } from 'node:events';
import t from 'tap';
import { limitFiles } from '../support/full-disk.ts';
import { ENTRY, linesOf, nextJson, scanwire, spawnNode } from '../support/scanwire.ts';
import { fixture, usedDataOf } from '../support/served.ts';

/** Node ends at a file that would grow too large, unless somebody listens to the signal: then the write fails, as on a full disk. */
const LISTENING = ['--import', `data:text/javascript,process.on('SIGXFSZ', () => {})`];

t.test('a server whose database cannot write its log ends with an error, so that it is started again', async (t) => {
    const data = await usedDataOf(t);
    const args = [...LISTENING, ENTRY, 'serve', '--data', data, '--port', '0', '--json'];
    const server = spawnNode(args, { env: { PATH: process.env.PATH, HOME: process.env.HOME } });
    t.teardown(() => server.kill('SIGKILL'));
    const log: string[] = [];
    server.stderr?.setEncoding('utf8').on('data', (text: string) => log.push(text));
    await nextJson(server, linesOf(server));

    const exited = once(server, 'exit');
    await limitFiles(server.pid as number, 1);
    await scanwire(['import', fixture('scans/udp.xml'), '--data', data]);
    t.equal((await exited)[0], 1);
    t.match(log.join(''), /The embedded database has ended by itself/);

    t.match(await scanwire(['import', fixture('scans/udp.xml'), '--data', data]), { code: 0 });
});
