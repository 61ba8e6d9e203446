import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

t.test('a sender that has closed asks no token server any more', async (t) => {
    const asked: IncomingMessage[] = [];
    const origin = await secureServer(t, (request) => asked.push(request));
    const sender = loopbackSender(t, { attemptTimeout: 30_000 });
    const oauth = { tokenUrl: `${origin}/token`, clientId: 'id', clientSecret: 'secret', ca: ROOT.cert };
    const sending = sender.send({
        exporterId: 'exporter',
        url: origin,
        trust: 'strict',
        headers: [],
        authentication: { ca: ROOT.cert, oauth },
        body: Buffer.from('{}'),
    });
    await until(() => asked.length === 1);
    let hasLeft = false;
    void once((asked[0] as IncomingMessage).socket, 'close').then(() => {
        hasLeft = true;
    });
    await sender.close({ timeout: 0 });
    t.match(await sending, { code: 'interrupted' });
    // For a token there are 15 s.
    await until(() => hasLeft, 5_000);
    t.pass('its process can end');
});
