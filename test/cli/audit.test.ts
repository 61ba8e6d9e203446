import { once } from 'node:events';
import t from 'tap';
import { scanwire } from '../support/scanwire.ts';
import { json, serve, usedDataOf } from '../support/served.ts';

t.test('lists what commands have changed, with a server and without one', async (t) => {
    const data = await usedDataOf(t);
    const { server } = await serve(t, data);
    const none = await scanwire(['audit', 'list', '--data', data]);
    t.match(none, { code: 0, stdout: /^Nothing was changed\.$/m });
    const { id } = await json<{ id: string }>(data, 'keys', 'create', 'ci');
    await json(data, 'keys', 'reveal', id);
    server.kill('SIGTERM');
    await once(server, 'exit');
    await json(data, 'keys', 'revoke', id);

    const entry = { actor: 'operator', subject: id, outcome: 'done' };
    t.match(await json(data, 'audit', 'list'), [
        { ...entry, operation: 'revokeKey' },
        { ...entry, operation: 'revealKey' },
        { ...entry, operation: 'createKey' },
    ]);
    t.match(await json(data, 'audit', 'list', '--operation', 'createKey', '--since', '1h'), { length: 1 });
    t.match(await json(data, 'audit', 'list', '--actor', 'ada'), { length: 0 });
    t.match(await scanwire(['audit', 'list', '--limit', '1', '--data', data]), {
        code: 0,
        stdout: /^ID +BEGUN +ACTOR +OPERATION +SUBJECT +OUTCOME\n\d+ +\S+Z? .*operator +revokeKey +[0-9a-f-]{36} +done$/m,
    });
});
