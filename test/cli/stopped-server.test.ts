import t from 'tap';
import { serve, usedDataOf } from '../support/served.ts';
import { atTerminal, withoutTerminal } from '../support/terminal.ts';

t.test('a command at a terminal says which process it waits for', { skip: withoutTerminal }, async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const waiting = `Waiting for the server (process ${served.pid}), which has not answered yet …`;
    t.notMatch(await atTerminal(`keys list --data '${data}'`), 'Waiting', 'not of one that answers');
    for (const command of ['keys list', 'export']) {
        server.kill('SIGSTOP');
        const said = await atTerminal(`${command} --data '${data}'`, {}, (text) => {
            if (text.includes('Waiting')) {
                server.kill('SIGCONT');
            }
        });
        t.match(said, waiting, command);
    }
});
